/** Calls to the hashing process: those that wait, and those in its hands. */
import { withResolvers } from '@spillway/common/within'
import type { BesideRequest } from '@spillway/queue/wire/beside'
import type { Verdict } from '@spillway/queue/wire/job'
import { Tally, type Work } from '@spillway/queue/wire/work'

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

export class Calls {
  /** In the order of their arrival. */
  #waiting = new Map<number, Entry>()
  readonly #inHand = new Map<number, Entry>()
  #lastId = 0
  /** The work of those that wait and those in hand. */
  readonly work = new Tally()

  get waiting(): number {
    return this.#waiting.size
  }

  get inHand(): number {
    return this.#inHand.size
  }

  /** @param endsAt when its answer is of no use any more, by the monotonic clock */
  add(request: BesideRequest['request'], work: Work | undefined, endsAt: number): Call {
    this.#lastId += 1
    const { promise: answer, resolve, reject } = withResolvers<Verdict>()
    // The caller may have left: a rejection that nobody waits for is no error of the process.
    answer.catch(() => undefined)
    const entry = { id: this.#lastId, request, answer, work, endsAt, attempts: 0, resolve, reject }
    this.#waiting.set(entry.id, entry)
    this.work.add(work)
    return entry
  }

  /** Takes out a waiting call; tells whether it is in hand, where it stays until it is answered. */
  forget({ id }: Call): boolean {
    const entry = this.#waiting.get(id)
    if (this.#waiting.delete(id)) this.work.remove(entry?.work)
    return this.#inHand.has(id)
  }

  /** How many calls are done before it, where no call is taken back. */
  ahead({ id }: Call): number {
    const [first] = this.#waiting.keys()
    if (!this.#waiting.has(id) || first === undefined) return 0
    return Math.min(id - first, this.#waiting.size - 1) + this.#inHand.size
  }

  /**
   * The next call that can be answered by then, which is in hand from now on: in a long line each
   * would be begun just too late. Where none is in hand, the next one: a prediction may be wrong.
   */
  next(answeredAt: number): Call | undefined {
    const by = this.#inHand.size === 0 ? 0 : answeredAt
    for (const entry of this.#waiting.values()) {
      if (entry.endsAt <= by) continue
      this.#waiting.delete(entry.id)
      entry.attempts += 1
      this.#inHand.set(entry.id, entry)
      return entry
    }
    return undefined
  }

  answered(id: number, verdict: Verdict): void {
    const entry = this.#inHand.get(id)
    if (entry === undefined) return
    this.#inHand.delete(id)
    this.work.remove(entry.work)
    entry.resolve(verdict)
  }

  /** The process ended: calls in hand wait again, first in line, or have had two attempts. */
  returned(error: Error): void {
    const again = [...this.#inHand].filter(([, { attempts }]) => attempts < ATTEMPTS)
    for (const entry of this.#inHand.values()) if (entry.attempts >= ATTEMPTS) this.#reject(entry, error)
    this.#inHand.clear()
    this.#waiting = new Map([...again, ...this.#waiting])
  }

  /** Rejects all that wait. */
  rejectAll(error: Error): void {
    for (const entry of this.#waiting.values()) this.#reject(entry, error)
    this.#waiting.clear()
  }

  #reject(entry: Entry, error: Error): void {
    this.work.remove(entry.work)
    entry.reject(error)
  }
}
