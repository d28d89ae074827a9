// Which jobs a worker hashes, and where their results go. A connection that is never opened stands
// in for Redis.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import { RedisClock } from '@spillway/queue/redis/clock'
import type { Result } from '@spillway/queue/wire/job'
import {
  decodeReply,
  type JobRef,
  presentKey,
  replyChannel,
  requestSeal,
  resultKey,
  resultSeal,
  upgradeOf,
} from '@spillway/queue/wire/reply'
import { parseKeyring, type SealContext } from '@spillway/queue/wire/seal'
import { Redis } from 'ioredis'
import { test, vi } from 'vitest'
import { processJob } from '../../src/consumer/consumer.ts'
import { Liveness } from '../../src/consumer/liveness.ts'
import { CapacityEstimate } from '../../src/hashing/capacity-estimate.ts'
import { Hasher } from '../../src/hashing/index.ts'
import { argon2idPolicy } from '../../src/hashing/policy.ts'
import { WorkerMetrics } from '../../src/ops/metrics.ts'
import { keepingLog } from '../parts.ts'

const keyring = parseKeyring(`test:${randomBytes(32).toString('base64')}`)
const policy = { memoryKib: 64, time: 1, parallelism: 1 }
const hasher = await Hasher.load(argon2idPolicy(policy), {})
const weaker = await (await Hasher.load(argon2idPolicy({ ...policy, memoryKib: 32 }), {})).hash('right')

const NOW = 1_800_000_000_000
const HASH_MS = 100
const LIFE_MS = 60_000
const prefix = '{test}'
const job: JobRef = { id: 'job', name: 'verify', deadline: NOW + LIFE_MS }

interface Case {
  /** For how long the client of the first request is there, in milliseconds. */
  heldMs?: number
  /** Where its ticket was redeemed last, and for how long it is there. */
  redeemed?: { at: string; leftMs: number }
  isTicketed?: boolean
  isAlone?: boolean
  password?: string
  /** Redis takes no writes. */
  isFull?: boolean
  /** What somebody who writes to Redis has made of the job. */
  forged?: Forge
}
type Forge = (sound: { data: Record<string, unknown> }) => { name?: string; data?: unknown }

/** A job of the gateway `home`. */
async function processed({
  heldMs = LIFE_MS,
  redeemed,
  isTicketed,
  isAlone,
  password = 'wrong',
  isFull,
  forged,
}: Case) {
  const redis = new Redis({ lazyConnect: true })
  const ofRedeemer = (key: unknown) => redeemed !== undefined && key === presentKey(prefix, job.id)
  const messages: [channel: string, jobId: string, result: unknown][] = []
  const stored: unknown[][] = []
  const opened = (id: string, sealed: string) => keyring.open(resultSeal(id === job.id ? job : upgradeOf(job)), sealed)
  vi.spyOn(redis, 'pttl').mockImplementation(async (key) => (ofRedeemer(key) ? (redeemed?.leftMs ?? -2) : -2))
  vi.spyOn(redis, 'get').mockImplementation(async (key) => (ofRedeemer(key) ? (redeemed?.at ?? null) : null))
  vi.spyOn(redis, 'set').mockImplementation(async (...args: unknown[]) => {
    if (isFull) throw new Error('OOM command not allowed')
    stored.push(args)
    return 'OK'
  })
  vi.spyOn(redis, 'publish').mockImplementation(async (channel, message) => {
    const { jobId, sealed } = decodeReply(String(message)) ?? assert.fail('no reply')
    return messages.push([String(channel), jobId, opened(jobId, sealed)])
  })
  const clock = new RedisClock()
  vi.spyOn(clock, 'now').mockReturnValue(NOW)
  const { lines, log } = keepingLog()
  const metrics = new WorkerMetrics()
  const request = { password, storedHash: weaker, upgrade: 'weaker' as const }
  const data = {
    ...{ deadline: job.deadline, enqueuedAt: NOW - 1_000, presentUntil: NOW + heldMs, replyTo: 'home' },
    sealed: keyring.seal(requestSeal(job), request),
  }
  const incoming = { ...job, data, opts: isTicketed ? { priority: 1 } : {}, ...forged?.({ data }) }
  const first = { costMs: HASH_MS, latencyMs: HASH_MS }
  const estimate = new CapacityEstimate({ slots: 1, first, times: () => ({ wallMs: 0, cpuMs: 0 }) })
  const asked = { isConnected: () => true, redisAnswersNewConnection: async () => true }
  const liveness = new Liveness({ limit: () => 2, stuckAfterMs: LIFE_MS, ...asked })
  liveness.started()
  if (!isAlone) liveness.started()
  const options = { redis, prefix, keyring, hasher, clock, log, metrics, estimate, liveness }
  const { outcome } = await processJob(incoming, options).finally(() => liveness.close())
  await until(() => lines.some((line) => 'outcome' in line))
  const counted = await metrics.registry.getSingleMetricAsString('spillway_jobs_total')
  return { outcome, messages, stored, lines, counted }
}

const mismatch: Result = { kind: 'mismatch' }
const channel = (to: string) => replyChannel(prefix, to)
const there = (leftMs: number) => ({ at: 'elsewhere', leftMs })

test.each<[which: string, what: 'is hashed' | 'is skipped', each: Case]>([
  ['whose client is held for one and a half more hashes', 'is hashed', { heldMs: 151 }],
  ['whose client is held for less', 'is skipped', { heldMs: 150 }],
  ['whose client has redeemed its ticket', 'is hashed', { heldMs: -1, redeemed: there(151) }],
  ['whose redeemed client is about to leave', 'is skipped', { heldMs: -1, redeemed: there(150) }],
  ['alone in hand, whose client is held', 'is hashed', { heldMs: 1, isAlone: true }],
  ['alone in hand, whose client has redeemed', 'is hashed', { heldMs: 0, redeemed: there(1), isAlone: true }],
  ['alone in hand, whose client is away', 'is skipped', { heldMs: 0, isAlone: true }],
])('a job %s %s', async (_which, what, each) => {
  const { outcome, stored, messages, counted } = await processed(each)
  const isHashed = what === 'is hashed'
  assert.equal(outcome, isHashed ? 'answered' : 'skipped')
  assert.deepEqual([stored.length > 0, messages.length > 0], [isHashed, isHashed])
  assert.match(counted, new RegExp(`{job="verify",outcome="${isHashed ? 'hashed' : 'skipped'}"} 1`))
})

const changed =
  (change: object): Forge =>
  ({ data }) => ({ data: { ...data, ...change } })
const sealedBy = (by: typeof keyring, context: SealContext, contents: object = { password: 'x', storedHash: null }) =>
  changed({ sealed: by.seal(context, contents) })
const stranger = parseKeyring(`test:${randomBytes(32).toString('base64')}`)

test.each<[what: string, forged: Forge]>([
  ['nothing sealed', ({ data: { sealed, ...data } }) => ({ data })],
  ['no deadline', ({ data: { deadline, ...data } }) => ({ data })],
  ['a deadline that is no number', changed({ deadline: 'never' })],
  ['a deadline put off', changed({ deadline: job.deadline + 3_600_000 })],
  ['a deadline brought forward', changed({ deadline: 1 })],
  ['a list for data', () => ({ data: [] })],
  ['nothing for data', () => ({ data: null })],
  ['an oversized payload', changed({ sealed: `test.${'A'.repeat(200_000)}` })],
  ['random bytes for a payload', changed({ sealed: `test.${randomBytes(300).toString('base64url')}` })],
  ['a payload sealed under another key', sealedBy(stranger, requestSeal(job))],
  ['a payload of the right key that is no request', sealedBy(keyring, requestSeal(job), { x: 1 })],
  ['a result for a payload', sealedBy(keyring, resultSeal(job), mismatch)],
  ["another job's payload", sealedBy(keyring, requestSeal({ ...job, id: 'other' }))],
  ['another name', () => ({ name: 'hash' })],
  ['a name that there is not', () => ({ name: 'constructor' })],
])('a job with %s is not hashed, and fails for good', async (_what, forged) => {
  await assert.rejects(processed({ forged }), { name: 'ForgedJobError', message: /malformed|does not open/ })
})

test('a result is stored until the deadline, and announced at the gateway that added the job', async () => {
  const { stored, messages } = await processed({ redeemed: there(LIFE_MS) })
  assert.deepEqual(messages, [[channel('home'), job.id, mismatch]])
  const [[key, sealed, ...life] = []] = stored
  assert.deepEqual([key, life], [resultKey(prefix, job.id), ['PX', LIFE_MS]])
  assert.deepEqual(keyring.open(resultSeal(job), String(sealed)), mismatch)
})

test.each<[what: string, gateways: string[], each: Case]>([
  ['a ticketed job', ['home', 'elsewhere'], { isTicketed: true, redeemed: there(LIFE_MS) }],
  ['an open job whose first hold is over', ['home', 'elsewhere'], { heldMs: -1, redeemed: there(LIFE_MS) }],
  ['a job that was redeemed at home', ['home'], { isTicketed: true, redeemed: { at: 'home', leftMs: LIFE_MS } }],
  ['a job that nobody has redeemed', ['home'], { isTicketed: true }],
])('the result of %s is announced at %o', async (_what, gateways, each) => {
  const { messages } = await processed(each)
  assert.deepEqual(
    messages,
    gateways.map((to) => [channel(to), job.id, mismatch]),
  )
})

test('the new hash that follows a match is announced at the same gateways', async () => {
  const each = { isTicketed: true, redeemed: there(LIFE_MS), password: 'right' }
  const { stored, messages } = await processed(each)
  await until(() => messages.length === 4)
  const following = messages.filter(([, id]) => id === upgradeOf(job).id)
  assert.deepEqual(
    following.map(([to]) => to),
    [channel('home'), channel('elsewhere')],
  )
  assert.deepEqual(
    stored.map(([key]) => key),
    [resultKey(prefix, job.id), resultKey(prefix, upgradeOf(job).id)],
  )
})

test('a result that Redis refuses to store is announced all the same, and counted as undelivered', async () => {
  const { messages, stored, lines, counted } = await processed({ isFull: true })
  assert.deepEqual([stored, messages], [[], [[channel('home'), job.id, mismatch]]])
  assert.match(counted, /outcome="undelivered"} 1/)
  assert.deepEqual(
    lines.map(({ level, msg }) => [level, msg]),
    [['error', 'result not stored']],
  )
})
