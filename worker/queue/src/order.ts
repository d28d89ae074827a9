/**
 * The order of the line: which request is hashed next, which one waits with a ticket, and which one
 * is refused. No other file decides this.
 *
 * 1. There are two kinds of waiting jobs. *Open* jobs have a request that waits on a connection:
 *    they are in BullMQ's list `wait`, first in, first out. *Ticketed* jobs are in BullMQ's set
 *    `prioritized`, in the order of their numbers. BullMQ takes open jobs first.
 * 2. Each open job that is added while ticketed jobs wait moves the {@link PROMOTED} oldest of these
 *    to the end of `wait` (promote-2.lua). So ticketed jobs get at least two thirds of the capacity.
 * 3. {@link placeOf} decides whether a request is open, ticketed or refused.
 * 4. A ticket is a sealed request (tickets.ts): the next redemption starts it again if
 *    Redis has lost its job or a worker has skipped it.
 * 5. Workers hash only for clients that are present: {@link isPresent}.
 * 6. A ticket that is given at once, and a refusal, are held for a while: {@link pacedMs}.
 * 7. Known devices go first, for at most half of the capacity: {@link KnownDevices}.
 *
 * `test/unit/line-simulation.test.ts` shows within seconds what another constant does to spikes,
 * loops, pollers and hoards.
 */
import type { TotalCapacity } from './wire/capacity.js'

/** Ticketed jobs that each open job promotes. */
export const PROMOTED = 2

/**
 * The line may fill this share of the jobs that workers do in a ticket's life. The rest is for open
 * jobs, and for a capacity that was measured too high.
 */
const LINE_SHARE = 0.6

/** While others have tickets, a new request is open only if its job would begin within this time. */
const BEGINS_SOON_MS = 1_000

/** The jobs of the queue at one moment. */
export interface QueueCounts {
  /** Whether operators have paused the queue: workers then take no jobs. */
  paused: boolean
  /** Open jobs that wait, ticketed jobs that wait, and jobs in the hands of workers. */
  open: number
  line: number
  active: number
}

/** What a process knows of the queue when it decides. */
export interface Load extends TotalCapacity, QueueCounts {
  /** Whether the queue was read recently. */
  known: boolean
}

export type Place = 'open' | 'ticketed' | 'refused'

/** A request that needs a place. Times are in milliseconds. */
export interface Request {
  /** How long it can be held. */
  holdMs: number
  /** How long its ticket would live. */
  ticketLifeMs: number
  /** Whether it goes before requests with tickets, because it has already waited with a ticket. */
  goesBeforeTickets: boolean
}

/** @param mostWaiting jobs that may wait or be active, however fast the workers are */
export function placeOf(load: Load, request: Request, mostWaiting: number): Place {
  const { open, line, active, latencyMs } = load
  if (open + line + active >= mostWaiting) return 'refused'
  const waitMs = openWaitMs(load)
  const goesNext = request.goesBeforeTickets || line === 0 || waitMs <= BEGINS_SOON_MS + latencyMs
  if (waitMs <= request.holdMs && goesNext) return 'open'
  return line < roomOfLine(load, request.ticketLifeMs) ? 'ticketed' : 'refused'
}

/** Milliseconds to the result of an open job that is added now; Infinity without workers, or while the queue is paused. */
export function openWaitMs({ open, active, paused, jobsPerSecond, latencyMs }: Load): number {
  if (paused) return Number.POSITIVE_INFINITY
  return Math.max(latencyMs, ((open + active + 1) * 1_000) / jobsPerSecond)
}

/** The number of ticketed jobs that may wait at once. */
export function roomOfLine({ linePerSecond }: Load, ticketLifeMs: number): number {
  return Math.max(1, (LINE_SHARE * linePerSecond * ticketLifeMs) / 1_000)
}

// Presence: rule 5.

/** The longest retry time that a client with a ticket gets, in milliseconds. */
export const AWAY_MAX_MS = 5_000
/** Clients must not poll in a busy loop, and Retry-After has whole seconds. */
const AWAY_MIN_MS = 1_000
/** How late a client may come back, in milliseconds: a slow network, or a page that reloads. */
export const GRACE_MS = 2_000

/**
 * Hashes that must fit into the rest of a client's presence. With a margin of 0, jobs start in the
 * last milliseconds of their clients' holds, and clients that throw tickets away get 0.6 of the
 * capacity instead of all of it.
 */
const MARGIN = 1.5

/** Whether a worker hashes a job now if its client is present until `untilMs`. */
export function isPresent(untilMs: number, nowMs: number, hashMs: number): boolean {
  return untilMs - nowMs > MARGIN * hashMs
}

/**
 * How long the client of a request is present, in milliseconds from now. The client of a first
 * request is present while it is held. A client that has come back with its ticket, or that asked
 * not to be held, is also present until the announced retry time plus a grace period.
 */
export function presentMs(holdMs: number, comesBack: boolean): number {
  return comesBack ? holdMs + AWAY_MAX_MS + GRACE_MS : holdMs
}

/** When a client should come back, in milliseconds, if its result is expected in `etaMs`. */
export function awayMs(etaMs: number): number {
  // The client comes back before its turn: it is held then, and its job is not skipped.
  return Math.min(AWAY_MAX_MS, Math.max(AWAY_MIN_MS, 0.7 * etaMs))
}

// Pace: rule 6.

/** How long a request is held before an immediate ticket or a refusal, in milliseconds. */
const PACED_MS = 4_000

/**
 * How long to hold a request before its ticket or refusal, at most `holdMs`. A random part keeps
 * clients that retry at once from falling into step.
 */
export function pacedMs(holdMs: number, random: () => number = Math.random): number {
  return Math.min(holdMs, PACED_MS) * (0.75 + 0.25 * random())
}

// Known devices: rule 7.

/** The share of the capacity that known devices may take before all others. */
const KNOWN_SHARE = 0.5
/** The largest burst of jobs that go first, in seconds of their share. */
const KNOWN_BURST_S = 1

/** Counts the jobs of known devices that this process puts first. */
export class KnownDevices {
  readonly #now: () => number
  #left = 1
  #countedAt: number

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.#countedAt = now()
  }

  /** Whether a job goes first, and counts it. `perSecond`: this process's part of the capacity. */
  takeTurn(perSecond: number): boolean {
    const nowMs = this.#now()
    const share = perSecond * KNOWN_SHARE
    const earned = ((nowMs - this.#countedAt) / 1_000) * share
    this.#left = Math.min(Math.max(1, share * KNOWN_BURST_S), this.#left + earned)
    this.#countedAt = nowMs
    if (this.#left < 1) return false
    this.#left -= 1
    return true
  }

  /** Takes back a turn whose job was not added, for instance because its device is unknown. */
  giveBack(): void {
    this.#left += 1
  }
}

// Refusals.

const RETRY_AFTER_MAX_S = 60

/** Spreads the retries of refused requests over the time in which there is room for them. */
export class Refusals {
  readonly #now: () => number
  /** Retries that are still expected. */
  #expected = 0
  #countedAt: number

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.#countedAt = now()
  }

  /**
   * Seconds until there is room for one more request, after all that were refused before.
   *
   * @param perSecond requests for which there is room each second
   */
  retryAfterS(perSecond: number): number {
    const nowMs = this.#now()
    const come = ((nowMs - this.#countedAt) / 1_000) * perSecond
    // Retry-After is never longer, so no more retries can be expected.
    this.#expected = Math.min(Math.max(0, this.#expected - come), RETRY_AFTER_MAX_S * perSecond) + 1
    this.#countedAt = nowMs
    return Math.min(RETRY_AFTER_MAX_S, Math.ceil(1 + this.#expected / perSecond))
  }
}
