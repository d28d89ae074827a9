// Random sequences of what clients, gateways and workers do to the line, beside a model of it. The worker is BullMQ's own, moved by
// hand. Redis is this file's alone, because it loses everything now and then.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { createLogger } from '@spillway/common/log'
import { until } from '@spillway/infra/processes/until'
import { startOwnRedis } from '@spillway/infra/test/own-redis'
import { type Job, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, test } from 'vitest'
import { promote } from '../../src/bullmq.ts'
import { FIRST_SCORE } from '../../src/capacity.ts'
import { PasswordClient, type PasswordClientOptions } from '../../src/client.ts'
import { queueKey } from '../../src/keys.ts'
import { PROMOTED } from '../../src/order.ts'
import { jobOfTicket, type Ticket } from '../../src/tickets.ts'
import { newId } from '../../src/wire/id.ts'
import { resultKey, resultSeal } from '../../src/wire/reply.ts'
import { parseKeyring } from '../../src/wire/seal.ts'

const keyring = parseKeyring(`test:${randomBytes(32).toString('base64')}`)
const log = createLogger({ service: 'test', level: 'silent' })
const LIFE_MS = 600_000
const TOKEN = 'by-hand'
const STEPS = 80

type Place = 'first' | 'open' | 'ticketed'
const places: readonly Place[] = ['first', 'open', 'ticketed', 'ticketed']
const endings = ['result', 'result', 'skipped', 'failed'] as const

let own: Awaited<ReturnType<typeof startOwnRedis>>
beforeAll(async () => {
  own = await startOwnRedis()
})
afterAll(() => own.close())

/** The same numbers for the same seed (mulberry32). */
function seeded(seed: number) {
  let state = seed
  const random = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] ?? assert.fail('of nothing')
}

/** Tells whether it knew of a line when it last looked, as it does after each open job that it adds. */
class WatchedClient extends PasswordClient {
  sawLine = false

  constructor(options: PasswordClientOptions) {
    super(options)
    const { estimates } = this
    const load = estimates.load.bind(estimates)
    estimates.load = () => {
      const read = load()
      this.sawLine = read.line > 0
      return read
    }
  }
}

/** The line as it should be, and the one in Redis. */
class Line {
  /** Tickets of clients that have no result yet. */
  readonly waiting = new Set<Ticket<object>>()
  /** Jobs: in the order in which they are taken, by number, and in hand. */
  open: string[] = []
  readonly inLine = new Map<string, number>()
  readonly active = new Map<string, Job>()
  readonly results = new Set<string>()
  readonly ended = new Set<string>()
  readonly #numbers = new Set<number>()
  /** Of jobs that got two numbers at once: they had each of these for a moment. */
  readonly #laterNumbers = new Map<string, number>()
  readonly #serving = [0, 0]
  readonly #redis: Redis
  readonly #prefix: string
  readonly #clients: readonly WatchedClient[]
  readonly #worker: Worker

  constructor(redis: Redis, prefix: string, clients: readonly WatchedClient[], worker: Worker) {
    this.#redis = redis
    this.#prefix = prefix
    this.#clients = clients
    this.#worker = worker
  }

  stateOf(id: string): string {
    if (this.results.has(id)) return 'result'
    if (this.open.includes(id) || this.inLine.has(id) || this.active.has(id)) return 'waiting'
    return this.ended.has(id) ? 'ended' : 'absent'
  }

  newTicket(client: WatchedClient): Ticket<object> {
    const times = { deadline: client.now() + LIFE_MS, expiresAt: Date.now() + LIFE_MS }
    const ticket: Ticket<object> = { id: newId(), name: 'verify', attempt: 1, contents: {}, ...times }
    this.waiting.add(ticket)
    return ticket
  }

  async submit(client: WatchedClient, ticket: Ticket<object>, place: Place): Promise<void> {
    await this.#add(client, ticket, place)
    const { sawLine } = client
    const { id } = jobOfTicket(ticket, ticket.attempt)
    if (ticket.number !== undefined) this.inLine.set(id, ticket.number)
    else if (place === 'first') this.open.unshift(id)
    else this.open.push(id)
    if (ticket.number !== undefined || this.inLine.size === 0) return
    // What the client has sent before is done.
    await client.connection.ping()
    const isPromoted = (await this.#redis.zcard(this.#key('prioritized'))) < this.inLine.size
    assert.equal(isPromoted, sawLine)
    if (isPromoted) this.#promoted()
  }

  async promote(): Promise<void> {
    await promote(this.#redis, this.#prefix)
    this.#promoted()
  }

  /** Takes the next job: an open one, or the one with the lowest number. */
  async take(): Promise<void> {
    const [next] = [...this.open, ...this.#byNumber()]
    const job: Job | undefined = await this.#worker.getNextJob(TOKEN, { block: false })
    assert.equal(job?.id, next)
    if (job === undefined || next === undefined) return
    this.open = this.open.filter((id) => id !== next)
    this.inLine.delete(next)
    this.active.set(next, job)
  }

  async finish(id: string, how: (typeof endings)[number]): Promise<void> {
    const job = this.active.get(id) ?? assert.fail('it is not in hand')
    this.active.delete(id)
    const sealed = keyring.seal(resultSeal({ id, name: 'verify', deadline: job.data.deadline }), { kind: 'match' })
    if (how === 'result') await this.#redis.set(resultKey(this.#prefix, id), sealed, 'PX', LIFE_MS)
    if (how === 'failed') await job.moveToFailed(new Error('of the test'), TOKEN, false)
    else await job.moveToCompleted({}, TOKEN, false)
    if (how === 'result') this.results.add(id)
    else this.ended.add(id)
  }

  async remove(client: WatchedClient, ticket: Ticket<object>): Promise<void> {
    const { id } = jobOfTicket(ticket, ticket.attempt)
    if (this.stateOf(id) !== 'waiting') return
    assert.equal(await client.remove(jobOfTicket(ticket, ticket.attempt)), !this.active.has(id))
    this.open = this.open.filter((other) => other !== id)
    this.inLine.delete(id)
  }

  /** Finds a result, a job that waits, or starts the request again. */
  async redeem(client: WatchedClient, ticket: Ticket<object>, place: Place): Promise<void> {
    const found = await this.#find(client, ticket, (id, state) => assert.equal(state, this.stateOf(id)))
    if (found === undefined) await this.submit(client, ticket, place)
    else if (found !== 'waiting') {
      assert.deepEqual(found, { kind: 'match' })
      this.waiting.delete(ticket)
    }
  }

  /** Two redemptions at once, each with its own copy of the ticket, start one job. */
  async redeemTwice(ticket: Ticket<object>): Promise<void> {
    const copies = this.#clients.map((client) => ({ client, copy: { ...ticket } }))
    const redeemed = copies.map(async ({ client, copy }) => {
      const found = await this.#find(client, copy)
      if (found === undefined) await this.#add(client, copy, 'ticketed')
    })
    await Promise.all(redeemed)
    const [one, other] = copies.map(({ copy }) => copy)
    assert.equal(one?.attempt, other?.attempt)
    Object.assign(ticket, one)
    const { id } = jobOfTicket(ticket, ticket.attempt)
    const score = await this.#redis.zscore(this.#key('prioritized'), id)
    if (score === null) return
    // One of them has given the job its place.
    ticket.number = [one?.number, other?.number].find((number) => number === Number(score) - FIRST_SCORE)
    assert.ok(ticket.number !== undefined)
    this.inLine.set(id, ticket.number)
    this.#laterNumbers.set(id, Math.max(this.#laterNumberOf(id), one?.number ?? 0, other?.number ?? 0))
  }

  /** Redis loses everything, once all gateways know the last number. */
  async flush(): Promise<void> {
    const last = Math.max(0, ...this.#numbers)
    await until(() => this.#clients.every((client) => client.estimates.line().last >= last))
    await this.#redis.flushall()
    this.open = []
    for (const lost of [this.inLine, this.active, this.results, this.ended]) lost.clear()
  }

  /** What holds after every step. */
  async check(): Promise<void> {
    assert.deepEqual((await this.#redis.lrange(this.#key('wait'), 0, -1)).reverse(), this.open)
    assert.deepEqual(await this.#redis.zrange(this.#key('prioritized'), 0, '-1'), this.#byNumber())
    assert.deepEqual(new Set(await this.#redis.lrange(this.#key('active'), 0, -1)), new Set(this.active.keys()))
    const lowest = Math.min(...[...this.inLine].map(([id, number]) => Math.max(number, this.#laterNumberOf(id))))
    for (const [n, client] of this.#clients.entries()) {
      const { serving } = client.estimates.line()
      assert.ok(serving >= (this.#serving[n] ?? 0), 'the number that is served went back')
      assert.ok(serving <= lowest, 'the number that is served has passed one that waits')
      this.#serving[n] = serving
    }
  }

  async #add(client: WatchedClient, ticket: Ticket<object>, place: Place): Promise<void> {
    const goesFirst = place === 'first'
    const admitted = { ...client.admitTo(place === 'ticketed' ? 'ticketed' : 'open'), goesFirst }
    const job = { ...jobOfTicket(ticket, ticket.attempt), name: 'verify' as const }
    const request = { password: 'right', storedHash: null }
    const submitted = await client.submit({ job, request, admitted, presentMs: LIFE_MS })
    submitted.end()
    ticket.number = submitted.number
    if (ticket.number === undefined) return
    assert.ok(!this.#numbers.has(ticket.number), `the number ${ticket.number} was given twice`)
    this.#numbers.add(ticket.number)
  }

  async #find(client: WatchedClient, ticket: Ticket<object>, seen?: (id: string, state: string) => void) {
    if (ticket.number !== undefined) client.estimates.numbered(ticket.number)
    for (; ; ticket.attempt += 1) {
      const job = jobOfTicket(ticket, ticket.attempt)
      const found = await client.resume(job)
      found.end()
      seen?.(job.id, found.state)
      if (found.state === 'result') return await found.result(0)
      if (found.state === 'waiting') return found.state
      if (found.state === 'absent') return undefined
    }
  }

  #laterNumberOf(id: string): number {
    return this.#laterNumbers.get(id) ?? 0
  }

  #byNumber(): string[] {
    return [...this.inLine].sort(([, one], [, other]) => one - other).map(([id]) => id)
  }

  #promoted(): void {
    const promoted = this.#byNumber().slice(0, PROMOTED)
    for (const id of promoted) this.inLine.delete(id)
    this.open.push(...promoted)
  }

  #key(part: Parameters<typeof queueKey>[1]): string {
    return queueKey(this.#prefix, part)
  }
}

for (const seed of [1, 2, 3, 4, 5, 6])
  test(`whatever happens in whatever order, who follows a ticket gets one result (seed ${seed})`, async (t) => {
    const prefix = `{model-${seed}}`
    const clients = [0, 1].map(() => new WatchedClient({ redisUrl: own.url, prefix, keyring, log }))
    // A machine that stands still for two seconds fails no command.
    for (const { connection } of clients) if (connection instanceof Redis) connection.options.commandTimeout = LIFE_MS
    const redis = new Redis(own.url, { maxRetriesPerRequest: null })
    const worker = new Worker('passwords', null, { connection: redis, prefix, autorun: false, lockDuration: LIFE_MS })
    t.onTestFinished(async () => {
      await worker.close()
      await Promise.all(clients.map((client) => client.close()))
      redis.disconnect()
    })
    await until(() => clients.every((client) => client.isReady() && client.estimates.load().known))
    // Known to Redis from now on, and so one command.
    for (const { connection } of clients) await promote(connection, prefix)
    const line = new Line(redis, prefix, clients, worker)
    const any = seeded(seed)
    const ticketOf = () => any([...line.waiting])
    const commands: Record<string, () => Promise<void>> = {
      submit: async () => await line.submit(any(clients), line.newTicket(any(clients)), any(places)),
      promote: () => line.promote(),
      take: () => line.take(),
      finish: async () => {
        if (line.active.size > 0) await line.finish(any([...line.active.keys()]), any(endings))
      },
      redeem: async () => {
        if (line.waiting.size > 0) await line.redeem(any(clients), ticketOf(), any(places))
      },
      redeemTwice: async () => {
        if (line.waiting.size > 0) await line.redeemTwice(ticketOf())
      },
      remove: async () => {
        if (line.waiting.size > 0) await line.remove(any(clients), ticketOf())
      },
      flush: () => line.flush(),
    }
    const often = { submit: 6, promote: 1, take: 5, finish: 4, redeem: 5, redeemTwice: 2, remove: 1, flush: 0.5 }
    const names = Object.entries(often).flatMap(([name, times]) => Array<string>(times * 2).fill(name))
    const done: string[] = []
    const run = async (name: string) => {
      done.push(name)
      await commands[name]?.()
      await line.check()
    }
    try {
      for (let n = 0; n < STEPS; n += 1) await run(any(names))
      // Workers answer everything from now on, and each client comes back until it has its result.
      for (let round = 0; line.waiting.size > 0 && round < 3; round += 1) {
        for (const ticket of [...line.waiting]) await line.redeem(any(clients), ticket, any(places))
        while (line.open.length + line.inLine.size > 0) await run('take')
        for (const id of [...line.active.keys()]) await line.finish(id, 'result')
      }
      assert.equal(line.waiting.size, 0)
    } catch (error) {
      throw new Error(`after ${done.join(', ')}`, { cause: error })
    }
  })
