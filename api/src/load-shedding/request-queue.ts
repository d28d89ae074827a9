/** The queue of requests that this gateway has read and not begun: first in, first out, by priority, each for a limited time. */
import type { Clock } from './clock.js'

/** How often overdue requests are looked for, in milliseconds. */
export const LOOK_MS = 50

/** `promised` goes on with what was begun: a ticket, a session. It comes before `new`, and is refused after it. */
export const queuedPriorities = ['promised', 'new'] as const
export type QueuedPriority = (typeof queuedPriorities)[number]

export interface Queued<T> {
  sinceMs: number
  isGone(): boolean
  /** Undefined when it is overdue, or its client has gone. */
  resolve(value: T | undefined): void
}

export interface RequestQueue<T> {
  length(priority: QueuedPriority): number
  isEmpty(): boolean
  push(priority: QueuedPriority, isGone: () => boolean): Promise<T | undefined>
  /** Begins the next requests, as long as there is room. */
  beginWhile(hasRoom: () => boolean, begin: (queuedMs: number) => T): void
}

export interface RequestQueueOptions {
  clock: Clock
  longestWaitMs(priority: QueuedPriority): number
  /** Is called for each request that was overdue. */
  overdue(): void
}

export function createRequestQueue<T>({ clock, longestWaitMs, overdue }: RequestQueueOptions): RequestQueue<T> {
  const queues: Record<QueuedPriority, Queued<T>[]> = { promised: [], new: [] }
  const isEmpty = () => queuedPriorities.every((priority) => queues[priority].length === 0)
  let isLooking = false

  function look(): void {
    isLooking = false
    const nowMs = clock.now()
    for (const priority of queuedPriorities) {
      const queue = queues[priority]
      const kept = queue.findIndex(({ sinceMs }) => nowMs - sinceMs <= longestWaitMs(priority))
      for (const { resolve } of queue.splice(0, kept < 0 ? queue.length : kept)) {
        overdue()
        resolve(undefined)
      }
    }
    lookLater()
  }

  function lookLater(): void {
    if (isLooking || isEmpty()) return
    isLooking = true
    clock.after(LOOK_MS, look)
  }

  return {
    length: (priority) => queues[priority].length,
    isEmpty,
    push: (priority, isGone) =>
      new Promise((resolve) => {
        queues[priority].push({ sinceMs: clock.now(), isGone, resolve })
        lookLater()
      }),
    beginWhile(hasRoom, begin) {
      for (const priority of queuedPriorities) {
        while (hasRoom()) {
          const next = queues[priority].shift()
          if (next === undefined) break
          next.resolve(next.isGone() ? undefined : begin(clock.now() - next.sinceMs))
        }
      }
    },
  }
}
