/** How many jobs a worker has in hand, and how several queues share its slots. */

/** A shorter wait is no backlog: on a busy machine a job waits in an empty queue, too. */
const BACKLOG_MS = 100
/** Batches for each slot: one that is hashed, and one that waits. */
const BATCHES = 2
/** Above this batch time (ms), prefetch nothing: a prefetched login would wait for a batch. */
const LONG_BATCH_MS = 150

/** The jobs that keep all hashing threads busy. */
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

  /** The queue was read: so many jobs waited. */
  queueRead(waiting: number): void {
    this.#jobsWait = waiting > 0
  }

  taken(queueWaitMs: number): void {
    this.#isBacklog = this.#jobsWait && queueWaitMs >= BACKLOG_MS
  }
}

/**
 * The share of one queue: what the other queues leave free, and at least its share of the waiting
 * jobs. No slot idles while any queue has work, and no queue starves behind another.
 */
export class SlotShare {
  readonly #jobsInHand: SharedJobs
  readonly #all: readonly SlotShare[]
  #waiting = 0
  #inHand = 0
  #onChange = (): void => undefined

  private constructor(jobsInHand: SharedJobs, all: readonly SlotShare[]) {
    this.#jobsInHand = jobsInHand
    this.#all = all
  }

  static among(queues: number, jobsInHand: SharedJobs): SlotShare[] {
    const all: SlotShare[] = []
    while (all.length < queues) all.push(new SlotShare(jobsInHand, all))
    return all
  }

  /** At least one. */
  limit(): number {
    const most = this.#jobsInHand.limit()
    const waiting = this.#sum((share) => share.#waiting)
    const share = waiting === 0 ? 0 : Math.round((most * this.#waiting) / waiting)
    const free = most - (this.#sum((one) => one.#inHand) - this.#inHand)
    return Math.max(1, share, free)
  }

  queueRead(waiting: number): void {
    this.#waiting = waiting
    this.#jobsInHand.queueRead(this.#sum((share) => share.#waiting))
    this.#changed()
  }

  started(): void {
    this.#inHand += 1
    this.#changed()
  }

  finished(): void {
    this.#inHand -= 1
    this.#changed()
  }

  taken(queueWaitMs: number): void {
    this.#jobsInHand.taken(queueWaitMs)
    this.#changed()
  }

  /** Calls this whenever the limit may have changed. */
  onChange(changed: () => void): void {
    this.#onChange = changed
  }

  #sum(read: (share: SlotShare) => number): number {
    return this.#all.reduce((sum, share) => sum + read(share), 0)
  }

  #changed(): void {
    for (const share of this.#all) share.#onChange()
  }
}

type SharedJobs = Pick<JobsInHand, 'limit' | 'queueRead' | 'taken'>
