// The line, simulated: gateways, a queue, workers and clients, by the project's own rules and estimates, and by a clock that is
// moved on from event to event. Times are in milliseconds.
import { Estimates } from '../../src/estimates.ts'
import { isPresent, PROMOTED, pacedMs, placeOf, presentMs, Refusals } from '../../src/order.ts'
import { ticketTimes } from '../../src/tickets.ts'

const HOLD_MS = 8_000
const TICKET_LIFE_MS = 300_000
const READ_INTERVAL_MS = 250
/** What a job that is skipped costs a worker. */
const SKIP_MS = 0.25
/** The clock's step. */
const TICK_MS = 0.25

interface Job {
  number: number | undefined
  presentUntilMs: number
  state: 'waiting' | 'result' | 'ended' | 'absent'
  announce?: (() => void) | undefined
}

interface Ticket {
  job: Job
  deadlineMs: number
}

type Answer =
  | { kind: 'result' | 'expired' }
  | { kind: 'busy'; retryAfterMs: number }
  | { kind: 'ticket'; ticket: Ticket; retryAfterMs: number }
type Answered = (answer: Answer) => void

class Clock {
  nowMs = 0
  readonly #events = new Map<number, (() => void)[]>()

  after(ms: number, run: () => void): void {
    const atMs = this.nowMs + TICK_MS * Math.ceil(ms / TICK_MS)
    const events = this.#events.get(atMs)
    if (events === undefined) this.#events.set(atMs, [run])
    else events.push(run)
  }

  run(untilMs: number, isOver = () => false): void {
    for (; this.nowMs < untilMs && !isOver(); this.nowMs += TICK_MS) {
      // Also those that are added meanwhile.
      for (const run of this.#events.get(this.nowMs) ?? []) run()
      this.#events.delete(this.nowMs)
    }
  }
}

/** Redis, BullMQ and the workers. */
class Queue {
  readonly #clock: Clock
  readonly #hashMs: number
  readonly #measured: number
  #slots = 2
  #open: Job[] = []
  #line: Job[] = []
  /** Jobs and results. */
  readonly #stored = new Set<Job>()
  #active = 0
  #last = 0

  constructor(clock: Clock, { perSecond, measured = 1 }: WorldOptions) {
    this.#clock = clock
    this.#hashMs = (this.#slots * 1_000) / perSecond
    this.#measured = measured
  }

  reading() {
    const hashMs = this.#hashMs / this.#measured
    const perSecond = (this.#slots * 1_000) / hashMs
    const times = { jobsPerSecond: perSecond, linePerSecond: perSecond, serviceMs: hashMs, latencyMs: hashMs }
    const jobs = { open: this.#open.length, line: this.#line.length, active: this.#active }
    const numbers = { first: this.#line[0]?.number, last: this.#last }
    return { paused: false, ...jobs, ...numbers, capacity: { workers: 1, slots: this.#slots, ...times } }
  }

  /** As PasswordClient numbers jobs. */
  nextNumber(lastKnown: number): number {
    this.#last = Math.max(this.#last, lastKnown) + 1
    return this.#last
  }

  add(job: Job): void {
    this.#stored.add(job)
    if (job.number === undefined) this.#open.push(job, ...this.#line.splice(0, PROMOTED))
    else this.#line.push(job)
    this.#work()
  }

  taken(job: Job): void {
    this.#stored.delete(job)
  }

  /** Workers join. */
  scale(times: number): void {
    this.#slots *= times
    this.#work()
  }

  /** Redis loses everything. */
  flush(): void {
    for (const job of this.#stored) job.state = 'absent'
    this.#stored.clear()
    this.#open = []
    this.#line = []
    this.#last = 0
  }

  #work(): void {
    while (this.#active < this.#slots) {
      const job = this.#open.shift() ?? this.#line.shift()
      if (job === undefined) return
      const isHashed = isPresent(job.presentUntilMs, this.#clock.nowMs, this.#hashMs)
      this.#active += 1
      this.#clock.after(isHashed ? this.#hashMs : SKIP_MS, () => {
        this.#active -= 1
        if (job.state === 'waiting') job.state = isHashed ? 'result' : 'ended'
        if (job.state === 'result') job.announce?.()
        this.#work()
      })
    }
  }
}

/** Admits, holds, gives tickets and redeems them: as the flow of a gateway does. */
class Gateway {
  readonly estimates: Estimates
  readonly #world: World
  readonly #refusals: Refusals

  constructor(world: World) {
    this.#world = world
    this.estimates = new Estimates(() => world.clock.nowMs)
    this.#refusals = new Refusals(() => world.clock.nowMs)
    this.#read()
  }

  login(holdMs: number, answered: Answered): void {
    this.#world.logins.push(this.#world.clock.nowMs)
    this.#start(holdMs, this.#world.clock.nowMs + TICKET_LIFE_MS, false, answered)
  }

  redeem(ticket: Ticket, holdMs: number, answered: Answered): void {
    const { job, deadlineMs } = ticket
    const { nowMs } = this.#world.clock
    if (job.number !== undefined) this.estimates.numbered(job.number)
    if (nowMs >= deadlineMs) answered({ kind: 'expired' })
    else if (job.state === 'ended' || job.state === 'absent') this.#start(holdMs, deadlineMs, true, answered)
    else {
      job.presentUntilMs = Math.max(job.presentUntilMs, nowMs + presentMs(holdMs, true))
      this.#hold(ticket, holdMs, answered)
    }
  }

  #read(): void {
    const { clock, queue, random } = this.#world
    const reading = this.estimates.beginReading()
    reading.succeeded(queue.reading())
    clock.after(READ_INTERVAL_MS - random(), () => this.#read())
  }

  #start(holdMs: number, deadlineMs: number, goesBeforeTickets: boolean, answered: Answered): void {
    const { clock, queue, random } = this.#world
    const load = this.estimates.load()
    const request = { holdMs: holdMs || HOLD_MS, ticketLifeMs: TICKET_LIFE_MS, goesBeforeTickets }
    const place = placeOf(load, request, Number.POSITIVE_INFINITY)
    const heldMs = place === 'open' ? holdMs : pacedMs(holdMs, random)
    if (place === 'refused') {
      const retryAfterMs = this.#refusals.retryAfterS(load.linePerSecond) * 1_000
      clock.after(heldMs, () => answered({ kind: 'busy', retryAfterMs }))
      return
    }
    const coming = this.estimates.coming(place === 'open' ? 'open' : 'line')
    const number = place === 'open' ? undefined : queue.nextNumber(this.estimates.line().last)
    if (number !== undefined) this.estimates.numbered(number)
    const presentUntilMs = clock.nowMs + presentMs(heldMs, goesBeforeTickets || holdMs === 0)
    const job: Job = { number, presentUntilMs, state: 'waiting' }
    coming.added()
    queue.add(job)
    this.#hold({ job, deadlineMs }, heldMs, answered)
  }

  #hold(ticket: Ticket, holdMs: number, answered: Answered): void {
    const { clock, queue } = this.#world
    const { job, deadlineMs } = ticket
    let isOver = false
    const end = (answer: Answer) => {
      if (isOver) return
      isOver = true
      job.announce = undefined
      clock.after(1, () => answered(answer))
    }
    const announced = () => {
      queue.taken(job)
      end({ kind: 'result' })
    }
    job.announce = announced
    if (job.state === 'result') announced()
    clock.after(holdMs, () => {
      const { retryAfter } = ticketTimes(this.estimates.etaMs(job.number ?? 0), deadlineMs - clock.nowMs)
      end({ kind: 'ticket', ticket, retryAfterMs: retryAfter * 1_000 })
    })
  }
}

interface WorldOptions {
  /** What two slots hash together. */
  perSecond: number
  gateways?: number | undefined
  /** The capacity as workers tell it, as a multiple of what it is. */
  measured?: number | undefined
}

export class World {
  readonly clock = new Clock()
  readonly queue: Queue
  /** When. */
  readonly logins: number[] = []
  /** Tickets that were redeemed too late. */
  expired = 0
  readonly #gateways: Gateway[]
  #seed = 1

  constructor(options: WorldOptions) {
    this.queue = new Queue(this.clock, options)
    this.#gateways = Array.from({ length: options.gateways ?? 1 }, () => new Gateway(this))
  }

  readonly random = (): number => {
    this.#seed = (this.#seed * 1_103_515_245 + 12_345) % 2 ** 31
    return this.#seed / 2 ** 31
  }

  /** Any: clients of one connection are spread. */
  gateway(): Gateway {
    return this.#gateways[Math.floor(this.random() * this.#gateways.length)] ?? new Gateway(this)
  }
}

// Clients: each logs in, and calls `done` when it is in.

type Follow = (
  world: World,
  answer: Extract<Answer, { kind: 'ticket' }>,
  next: { redeem: () => void; login: () => void },
) => void

function client(holdMs: number, follow: Follow) {
  return (world: World, done: () => void): void => {
    const { clock, random } = world
    const login = () => world.gateway().login(holdMs, answered)
    const answered = (answer: Answer): void => {
      if (answer.kind === 'result') done()
      else if (answer.kind === 'busy') clock.after(answer.retryAfterMs * (1 + random() / 2), login)
      else if (answer.kind === 'ticket') {
        const redeem = () => world.gateway().redeem(answer.ticket, holdMs, answered)
        follow(world, answer, { redeem, login })
      } else {
        world.expired += 1
        login()
      }
    }
    login()
  }
}

/** Knows Retry-After alone. */
const plain: Follow = ({ clock }, { retryAfterMs }, { redeem }) => clock.after(retryAfterMs, redeem)

/** Reads the document of the line until its turn is near, as @spillway/client/follow does. */
const watching: Follow = (world, { ticket, retryAfterMs }, { redeem }) => {
  const { clock, random } = world
  const redeemBy = clock.nowMs + 60_000
  const watch = () => {
    const { serving, rate } = world.gateway().estimates.line()
    const farMs = (((ticket.job.number ?? 0) - serving) * 1_000) / rate - 10_000
    if (!(farMs > 0) || clock.nowMs > redeemBy) redeem()
    else clock.after(Math.min(Math.max(farMs / 2, 2_000), 10_000) * (1 + random() / 4), watch)
  }
  clock.after(retryAfterMs * (1 + random() / 4), watch)
}

export const clients = {
  watching: client(HOLD_MS, watching),
  plain: client(HOLD_MS, plain),
  /** Cannot hold a connection. */
  polling: client(0, plain),
  /** Keeps its ticket until all come back at once. */
  hoarding: client(HOLD_MS, ({ clock }, { retryAfterMs }, { redeem }) =>
    clock.after(Math.max(15_000 - clock.nowMs, retryAfterMs), redeem),
  ),
  /** Throws its ticket away, and logs in again. */
  throwing: client(HOLD_MS, ({ clock }, _answer, { login }) => clock.after(1, login)),
}
