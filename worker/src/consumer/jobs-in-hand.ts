/**
 * How many jobs a worker has in hand. While jobs wait in the queue, a slot that becomes free must find a full batch at once, not after
 * a round trip to Redis. While none do, another worker may have a free slot, where a job begins sooner than behind one in hand here.
 */

/** A job that waited for less, in milliseconds, was taken as soon as it came. On a busy machine it may wait longer in an empty queue. */
const BACKLOG_MS = 100
/** Batches for each slot: one that is hashed, and one that waits. */
const BATCHES = 2

/** The jobs that hashing threads can be given at a time without one of them ever waiting for the next. */
export function jobsUnderLoad(slots: number, batchWidth: number): number {
  return slots * batchWidth * BATCHES
}

export interface JobsInHand {
  /** The most at a time. */
  limit(): number
  /** The queue was read: so many jobs waited. */
  queueRead(waiting: number): void
  /** A job was taken that had waited for so long, in milliseconds. */
  taken(queueWaitMs: number): void
}

export interface JobsInHandOptions {
  slots: number
  /** How many jobs a slot hashes at a time. */
  batchWidth(): number
}

export function createJobsInHand({ slots, batchWidth }: JobsInHandOptions): JobsInHand {
  let jobsWait = false
  let isBacklog = false
  return {
    limit: () => (isBacklog ? jobsUnderLoad(slots, batchWidth()) : slots),
    queueRead(waiting) {
      jobsWait = waiting > 0
    },
    taken(queueWaitMs) {
      isBacklog = jobsWait && queueWaitMs >= BACKLOG_MS
    },
  }
}
