/** How many jobs a worker has in hand, and how several queues share its slots. */

/** A shorter wait (ms) is no backlog: on a busy machine a job waits in an empty queue, too. */
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
  /** How many jobs a slot hashes at a time. */
  batchWidth(): number
  /** The time of that, in milliseconds. */
  batchMs(): number
}

/**
 * The limit of jobs in hand. While jobs wait in the queue, a free slot must find a full batch at
 * once, not after a round trip to Redis. While no job waits, another worker may have a free slot,
 * where a job begins sooner than behind a job in hand here.
 */
export class JobsInHand {
  readonly #options: JobsInHandOptions
  #jobsWait = false
  #isBacklog = false

  constructor(options: JobsInHandOptions) {
    this.#options = options
  }

  /** The most at a time. */
  limit(): number {
    const { slots, batchWidth, batchMs } = this.#options
    if (!this.#isBacklog) return slots
    return batchMs() > LONG_BATCH_MS ? slots * batchWidth() : jobsUnderLoad(slots, batchWidth())
  }

  /** The queue was read: so many jobs waited. */
  queueRead(waiting: number): void {
    this.#jobsWait = waiting > 0
  }

  /** A job was taken that had waited for so long, in milliseconds. */
  taken(queueWaitMs: number): void {
    this.#isBacklog = this.#jobsWait && queueWaitMs >= BACKLOG_MS
  }
}

/**
 * The share of one queue: what the other queues leave free, and at least its share by where the
 * jobs wait, even while others have taken more. No slot idles while any queue has work, and no
 * queue starves behind another.
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

  /** The most jobs of this queue in hand at a time, at least one. */
  limit(): number {
    const most = this.#jobsInHand.limit()
    const waiting = this.#sum((share) => share.#waiting)
    const share = waiting === 0 ? 0 : Math.round((most * this.#waiting) / waiting)
    const free = most - (this.#sum((one) => one.#inHand) - this.#inHand)
    return Math.max(1, share, free)
  }

  /** The queue was read: so many jobs waited. */
  queueRead(waiting: number): void {
    this.#waiting = waiting
    this.#jobsInHand.queueRead(this.#sum((share) => share.#waiting))
    this.#changed()
  }

  /** Work on a job of this queue begins. */
  started(): void {
    this.#inHand += 1
    this.#changed()
  }

  finished(): void {
    this.#inHand -= 1
    this.#changed()
  }

  /** The job that was started had waited for so long, in milliseconds. */
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
