/**
 * Request counts of all gateways for the live page. Each gateway writes its counts into one hash of every Redis server once a second; only the
 * live page reads it. Entries that are not renewed expire. Invalid entries are skipped, because Redis is not trusted.
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { checkFor } from '@spillway/client/protocol/schema'
import type { PasswordClient, RedisConnection } from '@spillway/client/queue-client'
import type { FastifyBaseLogger } from 'fastify'
import { ReplyError } from 'ioredis'
import type { FromSchema } from 'json-schema-to-ts'
import {
  combineOutcomes,
  countOutcomes,
  type GatewayMetrics,
  noOutcomes,
  type RequestOutcomes,
  requestOutcomes,
} from '../../http/metrics.js'

const PUBLISH_MS = 1_000
/** An older entry does not count. */
const FRESH_FOR_MS = 3_000
/** After this long without renewal, the next gateway that starts deletes an entry; after this long without a write, the hash expires. */
const KEPT_S = 60

const Count = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const
const Counts = {
  type: 'object',
  properties: { answered: Count, ticket: Count, rejected: Count, refused: Count, failed: Count, gone: Count },
  required: requestOutcomes,
  additionalProperties: false,
} as const
const Entry = {
  type: 'object',
  properties: {
    /** The time of writing: epoch milliseconds by Redis's clock. */
    at: { type: 'integer' },
    /** Host name and process id. */
    name: { type: 'string', pattern: '^[\\w.:-]{1,128}$' },
    /** Counts since the gateway started, and within the last `latelyMs`. */
    total: Counts,
    lately: Counts,
    latelyMs: { type: 'integer', minimum: 1, maximum: 600_000 },
  },
  required: ['at', 'name', 'total', 'lately', 'latelyMs'],
  additionalProperties: false,
} as const
type Entry = FromSchema<typeof Entry>
const isEntry = checkFor<Entry>(Entry)

export interface Gateways {
  /** The names of the gateways, this one's first. */
  names: string[]
  /** Requests since each gateway started, in about the last minute, and the latter per second. */
  total: RequestOutcomes
  lately: RequestOutcomes
  perSecond: RequestOutcomes
}

export interface GatewayReports {
  /** All live gateways; only this one while Redis does not answer. */
  read(): Promise<Gateways>
  /** Deletes this gateway's entry. */
  close(): Promise<void>
}

export interface GatewayReportsOptions {
  redis: readonly RedisConnection[]
  queuePrefix: string
  passwords: Pick<PasswordClient, 'now'>
  metrics: Pick<GatewayMetrics, 'requests'>
  log: FastifyBaseLogger
}

/** Publishes at once and each second; failures are logged and do not stop it. */
export function startGatewayReports(options: GatewayReportsOptions): GatewayReports {
  const { redis, queuePrefix, passwords, metrics, log } = options
  const id = randomUUID()
  const key = `${queuePrefix}:gateways`
  const name = `${hostname()}:${process.pid}`.replaceAll(/[^\w.:-]/g, '_').slice(-128)
  const lately = createLately()
  let publishing: Promise<void> | undefined
  const swept = new Set<RedisConnection>()

  async function own(): Promise<Entry> {
    const total = await countOutcomes(metrics)
    return { at: Math.round(passwords.now()), name, total, ...lately.since(total) }
  }

  async function publish(): Promise<void> {
    const entry = await own()
    lately.sample(entry.total)
    const text = JSON.stringify(entry)
    const written = await Promise.allSettled(redis.map((one) => publishTo(one, text)))
    const failed = written.find((each) => each.status === 'rejected')
    if (failed) throw failed.reason
  }

  async function publishTo(one: RedisConnection, entry: string): Promise<void> {
    try {
      await Promise.all([one.hset(key, id, entry), one.expire(key, KEPT_S)])
      if (!swept.has(one)) await sweep(one)
      swept.add(one)
    } catch (error) {
      // A key of another type is nobody's.
      if (error instanceof Error && error.message.startsWith('WRONGTYPE')) await one.del(key)
      // As with readings of the load: a connection that has lost a reply gives each command the reply of another.
      if (!(error instanceof ReplyError) && one.status === 'ready') one.disconnect(true)
      throw error
    }
  }

  /** Deletes old entries, and those without a time. Other fields are not checked: the entry may be of a newer version. */
  async function sweep(one: RedisConnection): Promise<void> {
    const old = Object.entries(await one.hgetall(key)).filter(([, text]) => {
      const at = Number(Object(parse(text)).at)
      return !(Math.abs(passwords.now() - at) <= KEPT_S * 1_000)
    })
    if (old.length > 0) await one.hdel(key, ...old.map(([field]) => field))
  }

  async function others(): Promise<Entry[]> {
    const now = passwords.now()
    const read = await Promise.all(redis.map((one) => one.hgetall(key).catch(() => ({}))))
    const { [id]: _own, ...entries } = Object.assign({}, ...read)
    return Object.values(entries)
      .map((text) => parse(String(text)))
      .filter((entry) => isEntry(entry))
      .filter(({ at }) => Math.abs(now - at) <= FRESH_FOR_MS)
  }

  function publishUnlessUnderway(): void {
    publishing ??= publish()
      .catch((error: unknown) => log.debug({ err: error }, 'the counts of this gateway could not be published'))
      .finally(() => {
        publishing = undefined
      })
  }

  publishUnlessUnderway()
  const timer = setInterval(publishUnlessUnderway, PUBLISH_MS)
  timer.unref()

  return {
    async read() {
      const entries = [await own(), ...(await others().catch(() => []))]
      return {
        names: entries.map((entry) => entry.name),
        total: sum(entries.map(({ total }) => total)),
        lately: sum(entries.map(({ lately }) => lately)),
        perSecond: sum(
          entries.map(({ lately, latelyMs }) =>
            combineOutcomes(lately, noOutcomes, (count) => (count * 1_000) / latelyMs),
          ),
        ),
      }
    },
    async close() {
      clearInterval(timer)
      await publishing
      await Promise.all(redis.map((one) => one.hdel(key, id).catch(() => undefined)))
    },
  }
}

function sum(all: RequestOutcomes[]): RequestOutcomes {
  return all.reduce((a, b) => combineOutcomes(a, b, (x, y) => x + y), noOutcomes)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The length of the recent period, in samples of a second. */
const SAMPLES = 60

interface Lately {
  /** Takes the counts of now; to be called once a second. */
  sample(total: RequestOutcomes): void
  /** The requests since the oldest sample, given the counts of now, and its age in milliseconds, at least 1. */
  since(total: RequestOutcomes): { lately: RequestOutcomes; latelyMs: number }
}

export function createLately(now: () => number = () => performance.now()): Lately {
  const samples = [{ atMs: now(), total: noOutcomes }]
  return {
    sample(total) {
      samples.push({ atMs: now(), total })
      if (samples.length > SAMPLES) samples.shift()
    },
    since(total) {
      const before = samples[0] ?? { atMs: 0, total: noOutcomes }
      return {
        lately: combineOutcomes(total, before.total, (count, then) => count - then),
        latelyMs: Math.max(1, Math.round(now() - before.atMs)),
      }
    },
  }
}
