/**
 * How many jobs a worker has in hand. While jobs wait in the queue, a slot that becomes free must find a full batch at once, not after
 * a round trip to Redis. While no job waits, another worker may have a free slot, where a job begins sooner than behind one in hand here.
 */

/** A job that waited for less, in milliseconds, was taken as soon as it came. On a busy machine it may wait longer in an empty queue. */
const BACKLOG_MS = 100
/** Batches for each slot: one that is hashed, and one that waits. */
const BATCHES = 2
/** Above this batch time (ms), prefetch nothing: a round trip is little of that time, and a prefetched login waits for a whole batch. */
const LONG_BATCH_MS = 150

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
  /** How long that takes, in milliseconds. */
  batchMs(): number
}

export function createJobsInHand({ slots, batchWidth, batchMs }: JobsInHandOptions): JobsInHand {
  let jobsWait = false
  let isBacklog = false

  function underLoad(): number {
    return batchMs() > LONG_BATCH_MS ? slots * batchWidth() : jobsUnderLoad(slots, batchWidth())
  }

  return {
    limit: () => (isBacklog ? underLoad() : slots),
    queueRead(waiting) {
      jobsWait = waiting > 0
    },
    taken(queueWaitMs) {
      isBacklog = jobsWait && queueWaitMs >= BACKLOG_MS
    },
  }
}
