/**
 * Load shedding: which requests are refused because this gateway itself is behind, however many workers there are.
 *
 * A request is in hand while this gateway works on it: until it is answered, without the time for which it is held for a worker. A bounded
 * number is in hand at a time; the others are queued. The queue absorbs bursts. In an overload it is kept short, and
 * requests that find it full are refused before anything is made of them.
 *
 * The measure is delay over an interval, not length at a moment: CoDel (RFC 8289), as Facebook applies it to requests ("Fail at
 * Scale", ACM Queue 13/8). @fastify/under-pressure looks at the event loop's delay alone, once a second, and then refuses
 * everything or nothing; a queue for the connections to the database leaves that delay short.
 */
import { type Clock, systemClock } from './clock.js'
import { createOverload } from './overload.js'
import { createRequestQueue, LOOK_MS, type QueuedPriority } from './request-queue.js'
import { createThroughput } from './throughput.js'

/**
 * Requests in hand at a time: as many as are answered in this time, in milliseconds. With fewer, less is sent to PostgreSQL and Redis
 * in one write, and each costs more.
 */
const IN_HAND_MS = 1_000
/**
 * At least so many. With 100, a gateway that was slow for a moment had so few in hand that it stayed slow, and refused what it could
 * have done: 278 logins a second of 600, where it does all 600 with this.
 */
const IN_HAND = 500
/** At least so many for each connection to PostgreSQL: with fewer, some would be idle. */
const PER_CONNECTION = 3

/**
 * How long a request may be queued, in milliseconds. The queue is as long as what is answered in that time: to queue more, only to
 * refuse it later, delays the others. BURST_QUEUE is the least, because the throughput is not known when a burst begins.
 */
const BURST_WAIT_MS = 1_500
const BURST_QUEUE = 500
/** The same for new requests in an overload. The least keeps the processor busy. */
const OVERLOAD_WAIT_MS = 100
const OVERLOAD_QUEUE = 16

/** `always` costs next to nothing, and is what others judge this gateway by: probes. */
export type Priority = QueuedPriority | 'always'

/** The work of this gateway on one request. */
export interface Work {
  /** The request is held for a worker. */
  pause(): void
  resume(): void
  /** Ends it. An answer that blames something unreachable does not count as throughput. Only the first end counts. */
  end(answered: boolean): void
}

export interface LoadShedder {
  /** Whether a request whose head was just read is to be read on. */
  admits(priority: Priority): boolean
  /** Resolves when work on a request may begin, with undefined when it is refused. */
  begin(priority: Priority, isGone: () => boolean): Promise<Work | undefined>
  /** Whether any request was refused within the last second. */
  isShedding(): boolean
  /** Requests a second that were answered of late. */
  perSecond(): number
  inHand(): number
  /** How long requests of late were queued, on average, in milliseconds. */
  delayMs(): number
}

/** @param connections to PostgreSQL, at the most */
export function createLoadShedder(connections: number, clock: Clock = systemClock): LoadShedder {
  const leastInHand = Math.max(IN_HAND, PER_CONNECTION * connections)
  const throughput = createThroughput(clock.now())
  const queue = createRequestQueue<Work>({ clock, longestWaitMs, overdue: () => overload.refused() })
  const overload = createOverload({ clock, hasQueue: () => !queue.isEmpty(), turnEnded: throughput.update })
  let inHand = 0

  const hasRoom = () => inHand < Math.max(leastInHand, throughput.perMs() * IN_HAND_MS)
  const isShort = (priority: QueuedPriority) => priority === 'new' && overload.isOverloaded()

  function longestWaitMs(priority: QueuedPriority): number {
    return isShort(priority) ? OVERLOAD_WAIT_MS + LOOK_MS : BURST_WAIT_MS
  }

  function isFull(priority: QueuedPriority): boolean {
    const [leastLength, waitMs] = isShort(priority) ? [OVERLOAD_QUEUE, OVERLOAD_WAIT_MS] : [BURST_QUEUE, BURST_WAIT_MS]
    return queue.length(priority) >= Math.max(leastLength, throughput.perMs() * waitMs)
  }

  function newWork(queuedMs: number): Work {
    throughput.begun(queuedMs)
    inHand++
    let state: 'in hand' | 'paused' | 'ended' = 'in hand'
    function leave(to: 'paused' | 'ended'): void {
      const wasInHand = state === 'in hand'
      if (state !== 'ended') state = to
      if (!wasInHand) return
      inHand--
      queue.beginWhile(hasRoom, newWork)
    }
    return {
      pause: () => leave('paused'),
      resume() {
        if (state !== 'paused') return
        state = 'in hand'
        inHand++
      },
      end(answered) {
        if (state !== 'ended' && answered) throughput.answered()
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
      if (hasRoom() && queue.length(priority) === 0) return newWork(0)
      if (!isFull(priority)) return queue.push(priority, isGone)
      overload.refused()
      return undefined
    },
    isShedding: overload.isRefusing,
    perSecond: () => throughput.perMs() * 1_000,
    inHand: () => inHand,
    delayMs: () => (overload.isIdle() ? 0 : throughput.queuedMs()),
  }
}

const nothing = () => undefined
const unlimited: Work = { pause: nothing, resume: nothing, end: nothing }
