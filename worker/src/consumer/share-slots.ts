/**
 * One set of slots for several queues. Each queue may have in hand what the others leave free, and at least its share by where the jobs
 * wait, even while others have taken more. No slot idles while any queue has work, and no queue starves behind another. One queue has all
 * of it.
 */
import type { JobsInHand } from './jobs-in-hand.js'

export interface SlotShare {
  /** The most jobs of this queue in hand at a time, at least one. */
  limit(): number
  /** The queue was read: so many jobs waited. */
  queueRead(waiting: number): void
  /** Work on a job of this queue begins, and ends. */
  started(): void
  finished(): void
  /** The job that was started had waited for so long, in milliseconds. */
  taken(queueWaitMs: number): void
  /** Called whenever limits may have changed. */
  onChange(changed: () => void): void
}

export function shareSlots(jobsInHand: JobsInHand, queues: number): SlotShare[] {
  const states = Array.from({ length: queues }, () => ({ waiting: 0, inHand: 0 }))
  const listeners: (() => void)[] = []

  const sum = (read: (state: { waiting: number; inHand: number }) => number): number =>
    states.reduce((total, state) => total + read(state), 0)
  const changed = (): void => {
    for (const listener of listeners) listener()
  }

  return states.map((own) => ({
    limit() {
      const all = jobsInHand.limit()
      const waiting = sum((state) => state.waiting)
      const share = waiting === 0 ? 0 : Math.round((all * own.waiting) / waiting)
      const free = all - (sum((state) => state.inHand) - own.inHand)
      return Math.max(1, share, free)
    },
    queueRead(waiting) {
      own.waiting = waiting
      jobsInHand.queueRead(sum((state) => state.waiting))
      changed()
    },
    started() {
      own.inHand += 1
      changed()
    },
    finished() {
      own.inHand -= 1
      changed()
    },
    taken(queueWaitMs) {
      jobsInHand.taken(queueWaitMs)
      changed()
    },
    onChange: (listener) => void listeners.push(listener),
  }))
}
