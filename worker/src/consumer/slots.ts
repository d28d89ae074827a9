/** How many jobs a worker has in hand. */

/** A shorter wait is not a backlog: on a busy machine, a job waits even in an empty queue. */
const BACKLOG_MS = 100
/** Batches for each slot: one that is hashed, and one that waits. */
const BATCHES = 2
/** Above this batch time (ms), prefetch nothing: a prefetched login would wait for a batch. */
const LONG_BATCH_MS = 150

/** The number of jobs that keeps all hashing threads busy. */
export function jobsUnderLoad(slots: number, batchWidth: number): number {
  return slots * batchWidth * BATCHES
}

interface JobsInHandOptions {
  slots: number
  batchWidth(): number
  batchMs(): number
}

/**
 * The limit of jobs in hand. While jobs wait in the queue, a free slot must find a full batch at
 * once. While no job waits, another worker may have a free slot, where a job begins sooner.
 */
export class JobsInHand {
  readonly #options: JobsInHandOptions
  #jobsWait = false
  #isBacklog = false

  constructor(options: JobsInHandOptions) {
    this.#options = options
  }

  limit(): number {
    const { slots, batchWidth, batchMs } = this.#options
    if (!this.#isBacklog) return slots
    return batchMs() > LONG_BATCH_MS ? slots * batchWidth() : jobsUnderLoad(slots, batchWidth())
  }

  /** Records how many jobs waited when the queue was read. */
  queueRead(waiting: number): void {
    this.#jobsWait = waiting > 0
  }

  taken(queueWaitMs: number): void {
    this.#isBacklog = this.#jobsWait && queueWaitMs >= BACKLOG_MS
  }
}
