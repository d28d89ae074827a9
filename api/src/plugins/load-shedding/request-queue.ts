/** The queue of requests that this gateway has read and not begun: FIFO by priority, with a limited wait. */
import type { Clock } from './overload.js'

/** How often overdue requests are removed, in milliseconds. */
export const CHECK_MS = 50

/**
 * `promised` continues earlier work: a ticket, a session. It is served before `new`, and refused after it, as is `known`: new requests of
 * devices that have logged in before. Anybody can claim to continue something, so other requests keep a share.
 */
export const queuedPriorities = ['promised', 'known', 'new'] as const
export type QueuedPriority = (typeof queuedPriorities)[number]

/** Promised requests that begin for each other one, where both wait. */
const PROMISED_FOR_EACH = 3

export interface Queued<T> {
  sinceMs: number
  isGone(): boolean
  /** Undefined when the request is overdue or its client disconnected. */
  resolve(value: T | undefined): void
}

export interface RequestQueue<T> {
  length(priority: QueuedPriority): number
  isEmpty(): boolean
  push(priority: QueuedPriority, isGone: () => boolean): Promise<T | undefined>
  /** Begins the next requests while there is room. */
  beginWhile(hasRoom: () => boolean, begin: (priority: QueuedPriority, queuedMs: number) => T): void
}

export interface RequestQueueOptions {
  clock: Clock
  longestWaitMs(priority: QueuedPriority): number
  /** Whether promised requests may begin now. */
  mayBeginPromised(): boolean
  /** Called for each overdue request. */
  overdue(): void
}

export function createRequestQueue<T>({
  clock,
  longestWaitMs,
  mayBeginPromised,
  overdue,
}: RequestQueueOptions): RequestQueue<T> {
  const queues: Record<QueuedPriority, Queued<T>[]> = { promised: [], known: [], new: [] }
  const isEmpty = () => queuedPriorities.every((priority) => queues[priority].length === 0)
  let isCheckDue = false
  let promisedInARow = 0

  function nextPriority(): QueuedPriority {
    const others = queues.known.length > 0 ? 'known' : 'new'
    if (queues.promised.length === 0 || !mayBeginPromised()) return others
    return queues[others].length > 0 && promisedInARow >= PROMISED_FOR_EACH ? others : 'promised'
  }

  function removeOverdue(): void {
    isCheckDue = false
    const nowMs = clock.now()
    for (const priority of queuedPriorities) {
      const queue = queues[priority]
      const kept = queue.findIndex(({ sinceMs }) => nowMs - sinceMs <= longestWaitMs(priority))
      for (const { resolve } of queue.splice(0, kept < 0 ? queue.length : kept)) {
        overdue()
        resolve(undefined)
      }
    }
    checkLater()
  }

  function checkLater(): void {
    if (isCheckDue || isEmpty()) return
    isCheckDue = true
    clock.after(CHECK_MS, removeOverdue)
  }

  return {
    length: (priority) => queues[priority].length,
    isEmpty,
    push: (priority, isGone) =>
      new Promise((resolve) => {
        queues[priority].push({ sinceMs: clock.now(), isGone, resolve })
        checkLater()
      }),
    beginWhile(hasRoom, begin) {
      while (hasRoom()) {
        const priority = nextPriority()
        const next = queues[priority].shift()
        if (next === undefined) break
        promisedInARow = priority === 'promised' ? promisedInARow + 1 : 0
        next.resolve(next.isGone() ? undefined : begin(priority, clock.now() - next.sinceMs))
      }
    },
  }
}
