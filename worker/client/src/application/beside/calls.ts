/** Calls to the hashing process: those that wait, and those in its hands. */
import type { BesideRequest } from '../../protocol/beside.js'
import type { Verdict } from '../../protocol/job.js'

/** A call in the hands of a process that ended is tried once more: it may be what ended it. */
const ATTEMPTS = 2

export interface Call extends BesideRequest {
  readonly answer: Promise<Verdict>
}

interface Entry extends Call {
  cost: number
  attempts: number
  resolve(verdict: Verdict): void
  reject(error: Error): void
}

export interface Calls {
  readonly waiting: number
  readonly inHand: number
  /** The mean cost of those that wait and those in hand; undefined without any. */
  meanCost(): number | undefined
  /** The cost is in relation to others. */
  add(request: BesideRequest['request'], cost: number): Call
  /** Takes a call out of the waiting ones. One in hand stays until the process has answered; tells whether it is one. */
  forget(call: Call): boolean
  /** How many calls are done before it, where no call is taken back. */
  ahead(call: Call): number
  /** The next call, which is in hand from now on. */
  next(): Call | undefined
  /** Returns its cost; undefined for a call that is not in hand. */
  answered(id: number, verdict: Verdict): number | undefined
  /** The process ended: calls in hand wait again, ahead of the others; those that had two attempts are rejected. */
  returned(error: Error): void
  /** Rejects all that wait. */
  rejectAll(error: Error): void
}

export function createCalls(): Calls {
  /** In the order of their arrival. */
  let waiting = new Map<number, Entry>()
  const inHand = new Map<number, Entry>()
  let waitingCost = 0
  let inHandCost = 0
  let lastId = 0

  return {
    get waiting() {
      return waiting.size
    },
    get inHand() {
      return inHand.size
    },
    meanCost() {
      const count = waiting.size + inHand.size
      return count === 0 ? undefined : (waitingCost + inHandCost) / count
    },
    add(request, cost) {
      lastId += 1
      let resolve: Entry['resolve'] = () => undefined
      let reject: Entry['reject'] = () => undefined
      const answer = new Promise<Verdict>((...settle) => {
        ;[resolve, reject] = settle
      })
      // The caller may have left: a rejection that nobody waits for is no error of the process.
      answer.catch(() => undefined)
      const entry = { id: lastId, request, answer, cost, attempts: 0, resolve, reject }
      waiting.set(entry.id, entry)
      waitingCost += cost
      return entry
    },
    forget({ id }) {
      waitingCost -= waiting.get(id)?.cost ?? 0
      waiting.delete(id)
      return inHand.has(id)
    },
    ahead({ id }) {
      const [first] = waiting.keys()
      return waiting.has(id) && first !== undefined ? Math.min(id - first, waiting.size - 1) + inHand.size : 0
    },
    next() {
      const [entry] = waiting.values()
      if (entry === undefined) return undefined
      waiting.delete(entry.id)
      entry.attempts += 1
      inHand.set(entry.id, entry)
      waitingCost -= entry.cost
      inHandCost += entry.cost
      return entry
    },
    answered(id, verdict) {
      const entry = inHand.get(id)
      if (entry === undefined) return undefined
      inHand.delete(id)
      inHandCost -= entry.cost
      entry.resolve(verdict)
      return entry.cost
    },
    returned(error) {
      const again = [...inHand].filter(([, { attempts }]) => attempts < ATTEMPTS)
      for (const { attempts, reject } of inHand.values()) if (attempts >= ATTEMPTS) reject(error)
      inHand.clear()
      inHandCost = 0
      waiting = new Map([...again, ...waiting])
      waitingCost = [...waiting.values()].reduce((sum, { cost }) => sum + cost, 0)
    },
    rejectAll(error) {
      for (const { reject } of waiting.values()) reject(error)
      waiting.clear()
      waitingCost = 0
    },
  }
}
