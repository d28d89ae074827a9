/**
 * Refuses requests when this gateway itself is overloaded, regardless of workers. A request is in
 * hand until it is answered, except while it is held for a worker. Requests in hand are limited;
 * others are queued, which absorbs bursts. In an overload the queue is kept short, and requests
 * that find it full are refused unprocessed.
 *
 * Overload is delay over an interval, not queue length at a moment: CoDel (RFC 8289), as Facebook
 * applies it to requests ("Fail at Scale", ACM Queue 13/8). @fastify/under-pressure refuses
 * everything or nothing, by the event loop's delay alone, which stays short while requests wait for
 * database connections.
 */
import type { TokenBucket } from '../token-bucket.js'
import { type Clock, Overload, systemClock } from './overload.js'
import { promisedShare } from './preference.js'
import { CHECK_MS, type QueuedPriority, RequestQueue } from './request-queue.js'

/**
 * The limit of requests in hand is the number answered in this time, in milliseconds. With a lower
 * limit, fewer commands share a write to PostgreSQL and Redis, and each costs more. With a higher
 * limit, requests wait too long for a connection to PostgreSQL.
 */
const IN_HAND_MS = 1_000
/** The lowest limit without an overload, because the throughput is unknown when a burst begins. */
const IN_HAND = 500
/** The lowest limit for each connection to PostgreSQL: with fewer, some would be idle. */
const PER_CONNECTION = 3

/**
 * How long a request may be queued, in milliseconds. The queue holds as many requests as are
 * answered in that time: more would only be refused later. BURST_QUEUE is the lowest limit, because
 * the throughput is unknown when a burst begins.
 */
const BURST_WAIT_MS = 1_500
const BURST_QUEUE = 500
/** The same for new requests in an overload. OVERLOAD_QUEUE keeps the processor busy. */
const OVERLOAD_WAIT_MS = 100
const OVERLOAD_QUEUE = 16

/** The most requests that begin in a turn in an overload. Without a limit, turns took 120 ms. */
const BEGUN_A_TURN = 32

/** How often the share of promised requests is checked while some wait, in milliseconds. */
const REFILL_MS = 5

/** `always` is for probes: they cost next to nothing, and orchestrators judge by them. */
export type Priority = QueuedPriority | 'always'

/** The work of this gateway on one request. */
export interface Work {
  /** The request is held for a worker, so it is not in hand. */
  pause(): void
  resume(): void
  /** Ends the work, once. `answered` counts as throughput: false for 5xx answers. */
  end(answered: boolean): void
}

export class LoadShedder {
  readonly #clock: Clock
  readonly #leastInHand: number
  readonly #throughput: Throughput
  readonly #queue: RequestQueue<Work>
  readonly #overload: Overload
  readonly #promisedShare: TokenBucket
  #inHand = 0
  #turn = 0
  #begunInTurn = 0
  #isRefillDue = false

  /** @param connections the size of the pool of connections to PostgreSQL */
  constructor(connections: number, clock: Clock = systemClock) {
    this.#clock = clock
    this.#leastInHand = PER_CONNECTION * connections
    this.#throughput = new Throughput(clock.now())
    this.#promisedShare = promisedShare(() => this.#throughput.perMs, clock.now)
    this.#queue = new RequestQueue<Work>({
      clock,
      longestWaitMs: (priority) => (this.#isShort(priority) ? OVERLOAD_WAIT_MS + CHECK_MS : BURST_WAIT_MS),
      mayBeginPromised: () => this.#mayBeginPromised(),
      overdue: () => this.#overload.refused(),
    })
    this.#overload = new Overload({
      clock,
      hasQueue: () => !this.#queue.isEmpty(),
      turnEnded: (nowMs) => this.#turnEnded(nowMs),
    })
  }

  /** Whether a request whose head has just been read is processed further. */
  admits(priority: Priority): boolean {
    if (priority === 'always') return true
    this.#overload.requestRead()
    if (!this.#isFull(priority) && !(this.#isShort(priority) && this.#overload.isTurnLate())) return true
    this.#overload.refused()
    return false
  }

  /** Resolves when work on a request may begin; with undefined when the request is refused. */
  async begin(priority: Priority, isGone: () => boolean): Promise<Work | undefined> {
    if (priority === 'always') return unlimited
    this.#overload.requestRead()
    const mayBegin = priority !== 'promised' || this.#mayBeginPromised()
    if (mayBegin && this.#hasRoom() && this.#queue.length(priority) === 0) return this.#newWork(priority, 0)
    if (this.#isFull(priority)) {
      this.#overload.refused()
      return undefined
    }
    if (!mayBegin && this.#hasRoom()) this.#overload.heldBack()
    return this.#queue.push(priority, isGone)
  }

  /** Whether requests wait here, or some are refused: then it matters which go first. */
  isBehind(): boolean {
    return !this.#queue.isEmpty() || this.#overload.isOverloaded() || this.#overload.isRefusing()
  }

  /** Whether any request was refused within the last second. */
  isShedding(): boolean {
    return this.#overload.isRefusing()
  }

  /** Recent throughput, in requests a second. */
  perSecond(): number {
    return this.#throughput.perMs * 1_000
  }

  inHand(): number {
    return this.#inHand
  }

  /** The recent average time in the queue, in milliseconds. */
  delayMs(): number {
    return this.#overload.isIdle() ? 0 : this.#throughput.queuedMs
  }

  #hasRoom(): boolean {
    const isOverloaded = this.#overload.isOverloaded()
    if (this.#begunInTurn >= BEGUN_A_TURN && isOverloaded) return false
    const least = isOverloaded ? this.#leastInHand : Math.max(this.#leastInHand, IN_HAND)
    return this.#inHand < Math.max(least, this.#throughput.perMs * IN_HAND_MS)
  }

  #mayBeginPromised(): boolean {
    return this.#promisedShare.hasLeft() || !this.#overload.isOverloaded()
  }

  #isShort(priority: QueuedPriority): boolean {
    return priority === 'new' && this.#overload.isOverloaded()
  }

  #isFull(priority: QueuedPriority): boolean {
    const [leastLength, waitMs] = this.#isShort(priority)
      ? [OVERLOAD_QUEUE, OVERLOAD_WAIT_MS]
      : [BURST_QUEUE, BURST_WAIT_MS]
    return this.#queue.length(priority) >= Math.max(leastLength, this.#throughput.perMs * waitMs)
  }

  #turnEnded(nowMs: number): void {
    this.#turn++
    this.#begunInTurn = 0
    this.#throughput.update(nowMs)
    this.#beginNext()
  }

  #beginNext(): void {
    this.#queue.beginWhile(
      () => this.#hasRoom(),
      (priority, queuedMs) => this.#newWork(priority, queuedMs),
    )
    // The others begin in the next turn, in which perhaps nothing is read.
    if (this.#begunInTurn >= BEGUN_A_TURN && !this.#queue.isEmpty()) this.#overload.requestRead()
    if (this.#isRefillDue || this.#queue.length('promised') === 0 || !this.#hasRoom()) return
    this.#isRefillDue = true
    this.#clock.after(REFILL_MS, () => {
      this.#isRefillDue = false
      this.#beginNext()
    })
  }

  #newWork(priority: QueuedPriority, queuedMs: number): Work {
    if (priority === 'promised') this.#promisedShare.take()
    this.#throughput.begun(queuedMs)
    this.#inHand++
    this.#begunInTurn++
    const begunIn = this.#turn
    let state: 'in hand' | 'paused' | 'ended' = 'in hand'
    const leave = (to: 'paused' | 'ended') => {
      const wasInHand = state === 'in hand'
      if (state !== 'ended') state = to
      if (!wasInHand) return
      this.#inHand--
      this.#beginNext()
    }
    return {
      pause: () => leave('paused'),
      resume: () => {
        if (state !== 'paused') return
        state = 'in hand'
        this.#inHand++
      },
      end: (answered) => {
        // A request that is answered in the turn in which it was read waited for nothing: many must
        // not raise the limit of requests in hand.
        if (state !== 'ended' && answered && this.#turn !== begunIn) this.#throughput.answered()
        leave('ended')
      },
    }
  }
}

const nothing = () => undefined
const unlimited: Work = { pause: nothing, resume: nothing, end: nothing }

/** The length of a measuring window, in milliseconds. */
const WINDOW_MS = 100
/** The weight of the last window in the moving average. */
const SMOOTHING = 0.3

class Throughput {
  /** Requests answered in a millisecond. */
  perMs = 0
  /** Average time in the queue of the last window that began any request, in milliseconds. */
  queuedMs = 0
  #window: { startMs: number; begun: number; queuedMs: number; answered: number }

  constructor(startMs: number) {
    this.#window = { startMs, begun: 0, queuedMs: 0, answered: 0 }
  }

  begun(queuedMs: number): void {
    this.#window.begun++
    this.#window.queuedMs += queuedMs
  }

  answered(): void {
    this.#window.answered++
  }

  /** Ends the current window if it is long enough. */
  update(nowMs: number): void {
    const { startMs, begun, queuedMs, answered } = this.#window
    if (nowMs - startMs < WINDOW_MS) return
    this.perMs += SMOOTHING * (answered / (nowMs - startMs) - this.perMs)
    if (begun > 0) this.queuedMs = queuedMs / begun
    this.#window = { startMs: nowMs, begun: 0, queuedMs: 0, answered: 0 }
  }
}
