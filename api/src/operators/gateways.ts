/**
 * The state of all gateways for the live page: each gateway writes its request counts and its delay
 * into one hash of every Redis server once a second. Entries that are not renewed expire; invalid ones are skipped,
 * because Redis is not trusted.
 */

import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { combineCounts } from '@spillway/queue/jobs/report'
import type { PasswordClient, RedisConnection } from '@spillway/queue/queue-client'
import { objectOf } from '@spillway/queue/wire/object-schema'
import { checkFor } from '@spillway/queue/wire/schema'
import type { FastifyBaseLogger } from 'fastify'
import { ReplyError } from 'ioredis'
import type { FromSchema } from 'json-schema-to-ts'
import type { LoadShedder } from '../plugins/load-shedding/load-shedder.js'
import {
  countOutcomes,
  countReasons,
  type GatewayMetrics,
  noOutcomes,
  noReasons,
  type RequestOutcomes,
} from '../plugins/metrics.js'

const PUBLISH_MS = 1_000
/** An older entry does not count. */
const FRESH_FOR_MS = 3_000
/** An entry that is not renewed is deleted by the next gateway that starts; the hash expires. */
const KEPT_S = 60

const Count = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const
const Counts = objectOf({
  ...{ answered: Count, ticket: Count, rejected: Count },
  ...{ refused: Count, overloaded: Count, failed: Count, gone: Count },
})
const Entry = objectOf({
  /** The time of writing: epoch milliseconds by Redis's clock. */
  at: { type: 'integer' },
  /** Host name and process id. */
  name: { type: 'string', pattern: '^[\\w.:-]{1,128}$' },
  /** Counts since the gateway started, and within the last `latelyMs`. */
  total: Counts,
  lately: Counts,
  latelyMs: { type: 'integer', minimum: 1, maximum: 600_000 },
  /** Of requests that were refused or failed within the last `latelyMs`. */
  reasons: {
    type: 'array',
    maxItems: 40,
    items: objectOf({ reason: { type: 'string', pattern: '^[a-z_]{1,40}$' }, count: Count }),
  },
  /** How long requests waited of late until the gateway began with them. */
  delayMs: { type: 'number', minimum: 0, maximum: 600_000 },
})
type Entry = FromSchema<typeof Entry>
const isEntry = checkFor<Entry>(Entry)

interface GatewayReportsOptions {
  redis: readonly RedisConnection[]
  queuePrefix: string
  passwords: Pick<PasswordClient, 'now'>
  metrics: Pick<GatewayMetrics, 'requests' | 'refused'>
  shedder: Pick<LoadShedder, 'delayMs'>
  log: FastifyBaseLogger
}

/** Publishes at once and each second; failures are logged and do not stop it. */
export class GatewayReports {
  readonly #options: GatewayReportsOptions
  readonly #id = randomUUID()
  readonly #key: string
  readonly #name = `${hostname()}:${process.pid}`.replaceAll(/[^\w.:-]/g, '_').slice(-128)
  readonly #lately = new Lately(noOutcomes)
  readonly #reasons = new Lately(noReasons)
  /** Redis servers whose old entries are deleted. */
  readonly #swept = new Set<RedisConnection>()
  readonly #timer: NodeJS.Timeout
  #publishing: Promise<void> | undefined

  constructor(options: GatewayReportsOptions) {
    this.#options = options
    this.#key = `${options.queuePrefix}:gateways`
    this.#publishUnlessUnderway()
    this.#timer = setInterval(() => this.#publishUnlessUnderway(), PUBLISH_MS)
    this.#timer.unref()
  }

  /**
   * All live gateways, this one first, and their requests together: since each started, in about
   * the last minute, and the latter per second. Only this gateway while Redis does not answer.
   */
  async read() {
    const entries = [await this.#own(), ...(await this.#others().catch(() => []))]
    const ratesOf = ({ lately, latelyMs }: Entry) =>
      combineCounts(lately, noOutcomes, (count) => (count * 1_000) / latelyMs)
    return {
      each: entries.map((entry) => ({
        ...{ name: entry.name, delayMs: entry.delayMs, reasons: entry.reasons, lately: entry.lately },
        answeredPerSecond: ratesOf(entry).answered,
      })),
      total: sum(entries.map(({ total }) => total)),
      lately: sum(entries.map(({ lately }) => lately)),
      perSecond: sum(entries.map(ratesOf)),
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#publishing
    await Promise.all(this.#options.redis.map((one) => one.hdel(this.#key, this.#id).catch(() => undefined)))
  }

  #publishUnlessUnderway(): void {
    this.#publishing ??= this.#publish()
      .catch((error: unknown) => {
        this.#options.log.debug({ err: error }, 'the counts of this gateway could not be published')
      })
      .finally(() => {
        this.#publishing = undefined
      })
  }

  async #publish(): Promise<void> {
    const entry = await this.#own()
    this.#lately.sample(entry.total)
    this.#reasons.sample(await countReasons(this.#options.metrics))
    const text = JSON.stringify(entry)
    const written = await Promise.allSettled(this.#options.redis.map((one) => this.#publishTo(one, text)))
    const failed = written.find((each) => each.status === 'rejected')
    if (failed) throw failed.reason
  }

  async #publishTo(one: RedisConnection, entry: string): Promise<void> {
    try {
      await Promise.all([one.hset(this.#key, this.#id, entry), one.expire(this.#key, KEPT_S)])
      if (!this.#swept.has(one)) await this.#sweep(one)
      this.#swept.add(one)
    } catch (error) {
      // A key of another type is nobody's.
      if (error instanceof Error && error.message.startsWith('WRONGTYPE')) await one.del(this.#key)
      // As with readings of the load: after a lost reply, each command would get the reply of
      // another.
      if (!(error instanceof ReplyError) && one.status === 'ready') one.disconnect(true)
      throw error
    }
  }

  /** Deletes old entries. Other fields are not checked: they may be of a newer version. */
  async #sweep(one: RedisConnection): Promise<void> {
    const old = Object.entries(await one.hgetall(this.#key)).filter(([, text]) => {
      const at = Number(Object(parse(text)).at)
      return !(Math.abs(this.#options.passwords.now() - at) <= KEPT_S * 1_000)
    })
    if (old.length > 0) await one.hdel(this.#key, ...old.map(([field]) => field))
  }

  async #own(): Promise<Entry> {
    const { metrics, passwords, shedder } = this.#options
    const [total, byReason] = await Promise.all([countOutcomes(metrics), countReasons(metrics)])
    const reasons = Object.entries(this.#reasons.since(byReason).lately)
      .map(([reason, count]) => ({ reason, count }))
      .filter(({ count }) => count > 0)
    const { lately, latelyMs } = this.#lately.since(total)
    const at = Math.round(passwords.now())
    return { at, name: this.#name, total, lately, latelyMs, reasons, delayMs: shedder.delayMs() }
  }

  async #others(): Promise<Entry[]> {
    const now = this.#options.passwords.now()
    const read = await Promise.all(this.#options.redis.map((one) => one.hgetall(this.#key).catch(() => ({}))))
    const { [this.#id]: _own, ...entries } = Object.assign({}, ...read)
    return Object.values(entries)
      .map((text) => parse(String(text)))
      .filter((entry) => isEntry(entry))
      .filter(({ at }) => Math.abs(now - at) <= FRESH_FOR_MS)
  }
}

function sum(all: RequestOutcomes[]): RequestOutcomes {
  return all.reduce((a, b) => combineCounts(a, b), noOutcomes)
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

/** What was counted in the recent period, by name. */
export class Lately<Name extends string> {
  readonly #none: Record<Name, number>
  readonly #now: () => number
  readonly #samples: { atMs: number; total: Record<Name, number> }[]

  /** @param none every name with 0 */
  constructor(none: Record<Name, number>, now: () => number = () => performance.now()) {
    this.#none = none
    this.#now = now
    this.#samples = [{ atMs: now(), total: none }]
  }

  /** Takes the counts of now; to be called once a second. */
  sample(total: Record<Name, number>): void {
    this.#samples.push({ atMs: this.#now(), total })
    if (this.#samples.length > SAMPLES) this.#samples.shift()
  }

  /** The counts since the oldest sample, and its age in milliseconds, at least 1. */
  since(total: Record<Name, number>): { lately: Record<Name, number>; latelyMs: number } {
    const before = this.#samples[0] ?? { atMs: 0, total: this.#none }
    return {
      lately: combineCounts(total, before.total, (count, then) => count - then),
      latelyMs: Math.max(1, Math.round(this.#now() - before.atMs)),
    }
  }
}
