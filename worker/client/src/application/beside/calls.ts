/** Calls to the hashing process: those that wait, and those in its hands. */
import type { BesideRequest } from '../../protocol/beside.js'
import type { Verdict } from '../../protocol/job.js'
import { createTally, type Tally, type Work } from '../../protocol/work.js'

/** A call in the hands of a process that ended is tried once more: it may be what ended it. */
const ATTEMPTS = 2

export interface Call extends BesideRequest {
  readonly answer: Promise<Verdict>
}

interface Entry extends Call {
  endsAt: number
  work: Work | undefined
  attempts: number
  resolve(verdict: Verdict): void
  reject(error: Error): void
}

export interface Calls {
  readonly waiting: number
  readonly inHand: number
  /** The work of those that wait and those in hand. */
  readonly work: Tally
  /** @param endsAt when its answer is of no use any more, by the monotonic clock */
  add(request: BesideRequest['request'], work: Work | undefined, endsAt: number): Call
  /** Takes a call out of the waiting ones. One in hand stays until the process has answered; tells whether it is one. */
  forget(call: Call): boolean
  /** How many calls are done before it, where no call is taken back. */
  ahead(call: Call): number
  /**
   * The next call that can be answered by then, which is in hand from now on. Where no call is in hand, the next one: a prediction may be
   * wrong. In a line as long as calls may wait, each would otherwise be begun just in time to be answered too late.
   */
  next(answeredAt: number): Call | undefined
  answered(id: number, verdict: Verdict): void
  /** The process ended: calls in hand wait again, ahead of the others; those that had two attempts are rejected. */
  returned(error: Error): void
  /** Rejects all that wait. */
  rejectAll(error: Error): void
}

export function createCalls(): Calls {
  /** In the order of their arrival. */
  let waiting = new Map<number, Entry>()
  const inHand = new Map<number, Entry>()
  const work = createTally()
  let lastId = 0

  return {
    get waiting() {
      return waiting.size
    },
    get inHand() {
      return inHand.size
    },
    work,
    add(request, ofCall, endsAt) {
      lastId += 1
      let resolve: Entry['resolve'] = () => undefined
      let reject: Entry['reject'] = () => undefined
      const answer = new Promise<Verdict>((...settle) => {
        ;[resolve, reject] = settle
      })
      // The caller may have left: a rejection that nobody waits for is no error of the process.
      answer.catch(() => undefined)
      const entry = { id: lastId, request, answer, work: ofCall, endsAt, attempts: 0, resolve, reject }
      waiting.set(entry.id, entry)
      work.add(ofCall)
      return entry
    },
    forget({ id }) {
      const entry = waiting.get(id)
      if (waiting.delete(id)) work.remove(entry?.work)
      return inHand.has(id)
    },
    ahead({ id }) {
      const [first] = waiting.keys()
      return waiting.has(id) && first !== undefined ? Math.min(id - first, waiting.size - 1) + inHand.size : 0
    },
    next(answeredAt) {
      const entry = inHand.size === 0 ? firstOf(waiting) : firstOf(waiting, answeredAt)
      if (entry === undefined) return undefined
      waiting.delete(entry.id)
      entry.attempts += 1
      inHand.set(entry.id, entry)
      return entry
    },
    answered(id, verdict) {
      const entry = inHand.get(id)
      if (entry === undefined) return
      inHand.delete(id)
      work.remove(entry.work)
      entry.resolve(verdict)
    },
    returned(error) {
      const again = [...inHand].filter(([, { attempts }]) => attempts < ATTEMPTS)
      for (const entry of inHand.values()) {
        if (entry.attempts < ATTEMPTS) continue
        work.remove(entry.work)
        entry.reject(error)
      }
      inHand.clear()
      waiting = new Map([...again, ...waiting])
    },
    rejectAll(error) {
      for (const entry of waiting.values()) {
        work.remove(entry.work)
        entry.reject(error)
      }
      waiting.clear()
    },
  }
}

/** The first whose time is not over by then [by any time]. */
function firstOf(waiting: ReadonlyMap<number, Entry>, answeredAt = 0): Entry | undefined {
  for (const entry of waiting.values()) if (entry.endsAt > answeredAt) return entry
  return undefined
}
