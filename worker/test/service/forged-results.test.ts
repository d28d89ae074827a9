// An attacker who writes to Redis makes up, swaps and replays results: none is believed.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import type { Submitted } from '@spillway/queue/client'
import { type JobRef, replyChannel, requestSeal, resultKey, resultSeal } from '@spillway/queue/wire/reply'
import { parseKeyring } from '@spillway/queue/wire/seal'
import { test } from 'vitest'
import { clientAndWorker, keyring, readyClient, resultOf, startedWorker, submit } from '../parts.ts'
import { jobKey, type Space, spaceFor } from '../space.ts'

const request = { password: 'wrong', storedHash: '$spillway-token$' }
const match = { kind: 'match' }
const stranger = parseKeyring(`test:${randomBytes(32).toString('base64')}`)

const forgeries: [what: string, result: (space: Space, job: JobRef, answered: JobRef) => Promise<string> | string][] = [
  ['in clear', () => JSON.stringify(match)],
  ['that is nothing', () => ''],
  ['that is random', () => `test.${randomBytes(284).toString('base64url')}`],
  ['sealed under a key of their own', (_space, job) => stranger.seal(resultSeal(job), match)],
  ['sealed under a key without a name', () => `.${randomBytes(284).toString('base64url')}`],
  ['sealed for another id', (_space, job) => keyring.seal(resultSeal({ ...job, id: 'other' }), match)],
  ['sealed for another name', (_space, job) => keyring.seal(resultSeal({ ...job, name: 'hash' }), match)],
  ['sealed for another deadline', (_space, job) => keyring.seal(resultSeal({ ...job, deadline: 1 }), match)],
  ['sealed as a request', (_space, job) => keyring.seal(requestSeal(job), match)],
  ['sealed as a ticket', (_space, job) => keyring.seal({ ...requestSeal(job), purpose: 'ticket' }, match)],
  ['sealed right that is none', (_space, job) => keyring.seal(resultSeal(job), { kind: 'welcome' })],
  [
    'that another job was given',
    async ({ redis, prefix }, _job, answered) => (await redis.get(resultKey(prefix, answered.id))) ?? assert.fail(),
  ],
  [
    "that is the job's own request",
    async (space, job) => JSON.parse((await space.redis.hget(jobKey(space, job.id), 'data')) ?? '').sealed,
  ],
]

/** A job that waits for nobody, and one of the same client that was answered with a match */
async function waitingAndAnswered(space: Space): Promise<{ waiting: Submitted; answered: JobRef }> {
  const client = await readyClient(space)
  const worker = await startedWorker(space)
  const right = await submit(client, 'verify', { ...request, password: 'right' })
  assert.deepEqual(await resultOf(right), match)
  await worker.close()
  return { waiting: await submit(client, 'verify', request), answered: right.job }
}

/** Announces a result to the waiters of the job; returns how many received it. */
async function announce(space: Space, { id }: JobRef, sealed: string): Promise<number> {
  const { replyTo } = JSON.parse((await space.redis.hget(jobKey(space, id), 'data')) ?? '')
  return await space.redis.publish(replyChannel(space.prefix, replyTo), `${id} ${sealed}`)
}

for (const [what, forge] of forgeries) {
  test.concurrent(`a result ${what} is not believed, neither announced nor stored, and the true one is`, async (t) => {
    const space = spaceFor(t)
    const { waiting, answered } = await waitingAndAnswered(space)
    const { job } = waiting
    const sealed = await forge(space, job, answered)
    const answer = resultOf(waiting)
    let settled = false
    void answer.finally(() => {
      settled = true
    })

    assert.equal(await announce(space, job, sealed), 1)
    await space.redis.set(resultKey(space.prefix, job.id), sealed, 'PX', 20_000)
    let broken = 0
    const observer = { resultReceived() {}, resultBroken: () => void broken++ }
    const elsewhere = await readyClient(space, { observer })
    const resumed = await elsewhere.resume(job)
    assert.deepEqual([resumed.state, broken], ['ended', 1])
    assert.equal(await resultOf(resumed, 0), undefined)
    assert.equal(settled, false)

    await startedWorker(space)
    assert.deepEqual(await answer, { kind: 'mismatch' })
  })
}

test.concurrent('messages that are no replies disturb nobody', async (t) => {
  const space = spaceFor(t)
  const { waiting } = await waitingAndAnswered(space)
  const { replyTo } = JSON.parse((await space.redis.hget(jobKey(space, waiting.job.id), 'data')) ?? '')
  const channel = replyChannel(space.prefix, replyTo)
  const answer = resultOf(waiting)
  for (const message of ['', ' ', waiting.job.id, ` ${waiting.job.id}`, 'nobody x', '{"a":1}', 'x'.repeat(1_000_000)]) {
    assert.equal(await space.redis.publish(channel, message), 1)
  }
  await startedWorker(space)
  assert.deepEqual(await answer, { kind: 'mismatch' })
})

test.concurrent('a result announced on the channel of another client is of no use there', async (t) => {
  const space = spaceFor(t)
  const mine = await readyClient(space)
  const theirs = await readyClient(space)
  const [pending, other] = [await submit(mine, 'verify', request), await submit(theirs, 'verify', request)]
  const swapped = keyring.seal(resultSeal(pending.job), match)
  await announce(space, other.job, swapped)
  const answers = [resultOf(pending), resultOf(other)]
  await startedWorker(space)
  assert.deepEqual(await Promise.all(answers), [{ kind: 'mismatch' }, { kind: 'mismatch' }])
})

test.concurrent('a result taken away is no result, and the wait ends in time', async (t) => {
  const { space, client } = await clientAndWorker(t)
  const pending = await submit(client, 'verify', request)
  await until(() => space.redis.exists(resultKey(space.prefix, pending.job.id)))
  await space.redis.del(resultKey(space.prefix, pending.job.id))
  const resumed = await (await readyClient(space)).resume(pending.job)
  assert.equal(await resultOf(resumed, 50), undefined)
})
