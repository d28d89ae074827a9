/**
 * Load shedding: refuses requests when this gateway itself is overloaded, regardless of workers.
 *
 * A request is in hand while this gateway works on it: until it is answered, except while it is held for a worker. The number of
 * requests in hand is limited; others are queued, which absorbs bursts. In an overload the queue is kept short, and requests that find
 * it full are refused before they are processed.
 *
 * Overload is detected by delay over an interval, not by queue length at a moment: CoDel (RFC 8289), as Facebook applies it to
 * requests ("Fail at Scale", ACM Queue 13/8). @fastify/under-pressure measures only the event loop's delay, once a second, then
 * refuses everything or nothing; and that delay stays short while requests wait for database connections.
 */
import { type Clock, createOverload, systemClock } from './overload.js'
import { createPromisedShare } from './preference.js'
import { CHECK_MS, createRequestQueue, type QueuedPriority } from './request-queue.js'

/**
 * The limit of requests in hand is the number answered in this time, in milliseconds. With a lower limit, fewer commands share a write to
 * PostgreSQL and Redis, and each costs more. With a higher limit, requests wait too long for a connection to PostgreSQL.
 */
const IN_HAND_MS = 1_000
/** The lowest limit without an overload, because the throughput is unknown when a burst begins. */
const IN_HAND = 500
/** The lowest limit for each connection to PostgreSQL: with fewer requests, some connections would be idle. */
const PER_CONNECTION = 3

/**
 * How long a request may be queued, in milliseconds. The queue holds as many requests as are answered in that time: more would only be
 * refused later. BURST_QUEUE is the lowest limit, because the throughput is unknown when a burst begins.
 */
const BURST_WAIT_MS = 1_500
const BURST_QUEUE = 500
/** The same for new requests in an overload. OVERLOAD_QUEUE keeps the processor busy. */
const OVERLOAD_WAIT_MS = 100
const OVERLOAD_QUEUE = 16

/**
 * The most requests that begin in a turn of the event loop in an overload. Without a limit all that had been read began together. Turns took
 * 120 ms, and for so long no probe was answered; with 32 connections accepted a turn, some waited for seconds.
 */
const BEGUN_A_TURN = 32

/** How often the share of promised requests is checked while some wait for their turn, in milliseconds. */
const REFILL_MS = 5

/** `always` is for probes: they cost next to nothing, and orchestrators judge the gateway by them. */
export type Priority = QueuedPriority | 'always'

/** The work of this gateway on one request. */
export interface Work {
  /** The request is held for a worker, so it is not in hand. */
  pause(): void
  resume(): void
  /** Ends the work; further calls do nothing. `answered` counts as throughput: false for 5xx answers. */
  end(answered: boolean): void
}

export interface LoadShedder {
  /** Whether a request whose head has just been read is processed further. */
  admits(priority: Priority): boolean
  /** Resolves when work on a request may begin; with undefined when the request is refused. */
  begin(priority: Priority, isGone: () => boolean): Promise<Work | undefined>
  /** Whether requests wait here, or some are refused: then it matters which go first. */
  isBehind(): boolean
  /** Whether any request was refused within the last second. */
  isShedding(): boolean
  /** Recent throughput, in requests a second. */
  perSecond(): number
  inHand(): number
  /** The recent average time in the queue, in milliseconds. */
  delayMs(): number
}

/** @param connections the size of the pool of connections to PostgreSQL */
export function createLoadShedder(connections: number, clock: Clock = systemClock): LoadShedder {
  const leastInHand = PER_CONNECTION * connections
  const throughput = createThroughput(clock.now())
  const queue = createRequestQueue<Work>({ clock, longestWaitMs, mayBeginPromised, overdue: () => overload.refused() })
  const overload = createOverload({ clock, hasQueue: () => !queue.isEmpty(), turnEnded })
  let inHand = 0
  let turn = 0
  let begunInTurn = 0
  const promisedShare = createPromisedShare(clock.now(), throughput.perMs)
  let isRefillDue = false

  function hasRoom(): boolean {
    if (begunInTurn >= BEGUN_A_TURN && overload.isOverloaded()) return false
    const least = overload.isOverloaded() ? leastInHand : Math.max(leastInHand, IN_HAND)
    return inHand < Math.max(least, throughput.perMs() * IN_HAND_MS)
  }
  function mayBeginPromised(): boolean {
    return promisedShare.hasLeft() || !overload.isOverloaded()
  }
  function turnEnded(nowMs: number): void {
    turn++
    begunInTurn = 0
    throughput.update(nowMs)
    beginNext()
  }
  function beginNext(): void {
    promisedShare.refill(clock.now())
    queue.beginWhile(hasRoom, newWork)
    // The others begin in the next turn, in which perhaps nothing is read.
    if (begunInTurn >= BEGUN_A_TURN && !queue.isEmpty()) overload.requestRead()
    if (isRefillDue || queue.length('promised') === 0 || !hasRoom()) return
    isRefillDue = true
    clock.after(REFILL_MS, () => {
      isRefillDue = false
      beginNext()
    })
  }
  const isShort = (priority: QueuedPriority) => priority === 'new' && overload.isOverloaded()

  function longestWaitMs(priority: QueuedPriority): number {
    return isShort(priority) ? OVERLOAD_WAIT_MS + CHECK_MS : BURST_WAIT_MS
  }

  function isFull(priority: QueuedPriority): boolean {
    const [leastLength, waitMs] = isShort(priority) ? [OVERLOAD_QUEUE, OVERLOAD_WAIT_MS] : [BURST_QUEUE, BURST_WAIT_MS]
    return queue.length(priority) >= Math.max(leastLength, throughput.perMs() * waitMs)
  }

  function newWork(priority: QueuedPriority, queuedMs: number): Work {
    if (priority === 'promised') promisedShare.taken()
    throughput.begun(queuedMs)
    inHand++
    begunInTurn++
    const begunIn = turn
    let state: 'in hand' | 'paused' | 'ended' = 'in hand'
    function leave(to: 'paused' | 'ended'): void {
      const wasInHand = state === 'in hand'
      if (state !== 'ended') state = to
      if (!wasInHand) return
      inHand--
      beginNext()
    }
    return {
      pause: () => leave('paused'),
      resume() {
        if (state !== 'paused') return
        state = 'in hand'
        inHand++
      },
      end(answered) {
        // A request that is answered in the turn in which it was read waited for nothing: many must not raise the limit of requests in hand.
        if (state !== 'ended' && answered && turn !== begunIn) throughput.answered()
        leave('ended')
      },
    }
  }

  return {
    admits(priority) {
      if (priority === 'always') return true
      overload.requestRead()
      if (!isFull(priority) && !(isShort(priority) && overload.isTurnLate())) return true
      overload.refused()
      return false
    },
    async begin(priority, isGone) {
      if (priority === 'always') return unlimited
      overload.requestRead()
      const mayBegin = priority !== 'promised' || mayBeginPromised()
      if (mayBegin && hasRoom() && queue.length(priority) === 0) return newWork(priority, 0)
      if (isFull(priority)) {
        overload.refused()
        return undefined
      }
      if (!mayBegin && hasRoom()) overload.heldBack()
      return queue.push(priority, isGone)
    },
    isBehind: () => !queue.isEmpty() || overload.isOverloaded() || overload.isRefusing(),
    isShedding: overload.isRefusing,
    perSecond: () => throughput.perMs() * 1_000,
    inHand: () => inHand,
    delayMs: () => (overload.isIdle() ? 0 : throughput.queuedMs()),
  }
}

const nothing = () => undefined
const unlimited: Work = { pause: nothing, resume: nothing, end: nothing }

/** The length of a measuring window, in milliseconds. */
const WINDOW_MS = 100
/** The weight of the last window in the moving average. */
const SMOOTHING = 0.3

interface Throughput {
  begun(queuedMs: number): void
  answered(): void
  /** Ends the current window if it is long enough. */
  update(nowMs: number): void
  /** Requests answered in a millisecond. */
  perMs(): number
  /** The average time in the queue of requests of the last window that began any, in milliseconds. */
  queuedMs(): number
}

function createThroughput(startMs: number): Throughput {
  let window = { startMs, begun: 0, queuedMs: 0, answered: 0 }
  let perMs = 0
  let queuedMs = 0
  return {
    begun(ms) {
      window.begun++
      window.queuedMs += ms
    },
    answered: () => void window.answered++,
    update(nowMs) {
      const lengthMs = nowMs - window.startMs
      if (lengthMs < WINDOW_MS) return
      perMs += SMOOTHING * (window.answered / lengthMs - perMs)
      if (window.begun > 0) queuedMs = window.queuedMs / window.begun
      window = { startMs: nowMs, begun: 0, queuedMs: 0, answered: 0 }
    },
    perMs: () => perMs,
    queuedMs: () => queuedMs,
  }
}
