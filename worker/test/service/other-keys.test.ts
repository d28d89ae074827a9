// A worker takes no jobs while its keys open nothing that gateways seal.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadWithDoubles } from '@spillway/infra/harness/doubles'
import { freePort } from '@spillway/infra/processes/port'
import { until } from '@spillway/infra/processes/until'
import { parseKeyring } from '@spillway/queue/wire/seal'
import { readWorkerConfig } from '@spillway/worker/config'
import { RunningWorker } from '@spillway/worker/start'
import { test } from 'vitest'
import {
  clientFor,
  jobsAreCounted,
  keepingLog,
  readyClient,
  resultOf,
  sealKeys,
  startedWorker,
  submit,
  submitted,
  workerEnvironment,
} from '../parts.ts'
import { activeJobs, type Space, waitingJobs } from '../space.ts'

const otherKeys = `other:${randomBytes(32).toString('base64')}`
const match = { kind: 'match' }

/** Starts a worker that reads its keys from a file, without waiting until it takes jobs. */
async function startWithKeys(space: Space, keys: string) {
  const folder = await mkdtemp(join(tmpdir(), 'spillway-'))
  const file = join(folder, 'keys')
  await writeFile(file, keys)
  const port = await freePort()
  const env = { ...workerEnvironment(space), LOG_LEVEL: 'silent', SPILLWAY_SEAL_KEYS: keys, OPS_PORT: String(port) }
  const { lines, log } = keepingLog()
  const starting = RunningWorker.start(
    readWorkerConfig(env),
    1,
    log,
    { SPILLWAY_SEAL_KEYS_FILE: file },
    loadWithDoubles,
  )
  space.closing(async () => {
    await (await starting).close()
    await rm(folder, { recursive: true })
  })
  return {
    lines,
    reload: async (other: string) => {
      await writeFile(file, other)
      process.emit('SIGHUP')
    },
    readiness: async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status,
  }
}

test('a worker with other keys than gateways is not ready, takes no job and names the setting, until it has them', async (t) => {
  const { space, client } = await clientFor(t)
  await until(async () => (await space.redis.zcard(`${space.prefix}:sealing`)) === 1)
  const worker = await startWithKeys(space, otherKeys)
  const warning = await until(() =>
    worker.lines.find(({ msg }) => /^the gateways of this queue have other keys/.test(msg)),
  )
  assert.deepEqual([warning.level, warning.reason], ['warn', 'compare SPILLWAY_SEAL_KEYS with theirs'])
  assert.equal(await worker.readiness(), 503)
  await until(() => client.estimates.hasOtherKeys())
  assert.equal(client.estimates.load().workers, 0)
  const pending = await submitted(client)
  assert.deepEqual([(await waitingJobs(space)).length, await activeJobs(space)], [1, []])

  await worker.reload(`${sealKeys},${otherKeys}`)
  assert.deepEqual(await resultOf(pending), match)
  await until(async () => (await worker.readiness()) === 200)
  await until(() => client.estimates.load().workers === 1 && !client.estimates.hasOtherKeys())

  // As when gateways seal with a key that the worker has lost.
  await worker.reload(otherKeys)
  await until(async () => (await worker.readiness()) === 503)
  // A read that is under way may still take the oldest job.
  const kept = await until(async () => {
    const pending = await submitted(client)
    return (await waitingJobs(space)).length > 1 ? pending : undefined
  })
  await worker.reload(sealKeys)
  assert.deepEqual(await resultOf(kept), match)
})

test('a worker with the key of one of several clients takes jobs, and a job of another key fails', async (t) => {
  const { space, client } = await clientFor(t)
  const other = await readyClient(space, { keyring: parseKeyring(otherKeys) })
  await until(async () => (await space.redis.zcard(`${space.prefix}:sealing`)) === 2)
  const worker = await startedWorker(space)
  await until(() => other.estimates.hasOtherKeys() && !client.estimates.hasOtherKeys())
  assert.deepEqual(await resultOf(await submitted(client)), match)
  await submit(other, 'hash', { password: 'x' })
  await jobsAreCounted(worker, 'hash forged 1', 'verify hashed 1')
  assert.deepEqual(await activeJobs(space), [])
})
