/** The queue of requests that were read and not begun: FIFO by priority, with a limited wait. */
import type { Clock } from './overload.js'

/** How often overdue requests are removed, in milliseconds. */
export const CHECK_MS = 50

/**
 * `promised` continues earlier work: a ticket, a session. It is served before `new`, and refused
 * after it, as is `known`: new requests of devices that have logged in before. Anybody can claim to
 * continue something, so other requests keep a share.
 */
const queuedPriorities = ['promised', 'known', 'new'] as const
export type QueuedPriority = (typeof queuedPriorities)[number]

/** Promised requests that begin for each other one, where both wait. */
const PROMISED_FOR_EACH = 3

interface Queued<T> {
  sinceMs: number
  isGone(): boolean
  /** Undefined when the request is overdue or its client disconnected. */
  resolve(value: T | undefined): void
}

interface RequestQueueOptions {
  clock: Clock
  longestWaitMs(priority: QueuedPriority): number
  mayBeginPromised(): boolean
  /** Called for each overdue request. */
  overdue(): void
}

export class RequestQueue<T> {
  readonly #options: RequestQueueOptions
  readonly #queues: Record<QueuedPriority, Queued<T>[]> = { promised: [], known: [], new: [] }
  #isCheckDue = false
  #promisedInARow = 0

  constructor(options: RequestQueueOptions) {
    this.#options = options
  }

  length(priority: QueuedPriority): number {
    return this.#queues[priority].length
  }

  isEmpty(): boolean {
    return queuedPriorities.every((priority) => this.length(priority) === 0)
  }

  push(priority: QueuedPriority, isGone: () => boolean): Promise<T | undefined> {
    return new Promise((resolve) => {
      this.#queues[priority].push({ sinceMs: this.#options.clock.now(), isGone, resolve })
      this.#checkLater()
    })
  }

  /** Begins the next requests while there is room. */
  beginWhile(hasRoom: () => boolean, begin: (priority: QueuedPriority, queuedMs: number) => T): void {
    while (hasRoom()) {
      const priority = this.#nextPriority()
      const next = this.#queues[priority].shift()
      if (next === undefined) break
      this.#promisedInARow = priority === 'promised' ? this.#promisedInARow + 1 : 0
      next.resolve(next.isGone() ? undefined : begin(priority, this.#options.clock.now() - next.sinceMs))
    }
  }

  #nextPriority(): QueuedPriority {
    const others = this.length('known') > 0 ? 'known' : 'new'
    if (this.length('promised') === 0 || !this.#options.mayBeginPromised()) return others
    return this.length(others) > 0 && this.#promisedInARow >= PROMISED_FOR_EACH ? others : 'promised'
  }

  #checkLater(): void {
    if (this.#isCheckDue || this.isEmpty()) return
    this.#isCheckDue = true
    this.#options.clock.after(CHECK_MS, () => this.#removeOverdue())
  }

  #removeOverdue(): void {
    const { clock, longestWaitMs, overdue } = this.#options
    this.#isCheckDue = false
    const nowMs = clock.now()
    for (const priority of queuedPriorities) {
      const queue = this.#queues[priority]
      const kept = queue.findIndex(({ sinceMs }) => nowMs - sinceMs <= longestWaitMs(priority))
      for (const { resolve } of queue.splice(0, kept < 0 ? queue.length : kept)) {
        overdue()
        resolve(undefined)
      }
    }
    this.#checkLater()
  }
}
