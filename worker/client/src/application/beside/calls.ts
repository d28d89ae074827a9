/** Calls to the hashing process: those that wait, and those in its hands. */
import { withResolvers } from '@spillway/common/within'
import type { BesideRequest } from '@spillway/queue/wire/beside'
import type { Result } from '@spillway/queue/wire/job'

/** A call whose process ended is tried once more: the call may have ended it. */
const ATTEMPTS = 2

export interface Call extends BesideRequest {
  readonly answer: Promise<Result>
}

interface Entry extends Call {
  endsAt: number
  attempts: number
  resolve(result: Result): void
  reject(error: Error): void
}

export class Calls {
  /** In the order of their arrival. */
  #waiting = new Map<number, Entry>()
  readonly #inHand = new Map<number, Entry>()
  #lastId = 0

  get waiting(): number {
    return this.#waiting.size
  }

  get inHand(): number {
    return this.#inHand.size
  }

  /** @param endsAt the time, by the monotonic clock, after which its answer is useless */
  add(request: BesideRequest['request'], endsAt: number): Call {
    this.#lastId += 1
    const { promise: answer, resolve, reject } = withResolvers<Result>()
    // The caller may have left: a rejection that nobody waits for is not an error of the process.
    answer.catch(() => undefined)
    const entry = { id: this.#lastId, request, answer, endsAt, attempts: 0, resolve, reject }
    this.#waiting.set(entry.id, entry)
    return entry
  }

  /** Removes a waiting call. Returns whether it is in hand, where it stays until its answer. */
  forget({ id }: Call): boolean {
    this.#waiting.delete(id)
    return this.#inHand.has(id)
  }

  /**
   * Takes the next call that can be answered by then: in a long line, each call would otherwise
   * begin just too late. If no call is in hand, takes the first one: a prediction may be wrong.
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

  answered(id: number, result: Result): void {
    const entry = this.#inHand.get(id)
    if (entry === undefined) return
    this.#inHand.delete(id)
    entry.resolve(result)
  }

  /** The process ended: calls in hand wait again, first in line, or reject after two attempts. */
  returned(error: Error): void {
    const again = [...this.#inHand].filter(([, { attempts }]) => attempts < ATTEMPTS)
    for (const entry of this.#inHand.values()) if (entry.attempts >= ATTEMPTS) entry.reject(error)
    this.#inHand.clear()
    this.#waiting = new Map([...again, ...this.#waiting])
  }

  /** Rejects all waiting calls. */
  rejectAll(error: Error): void {
    for (const entry of this.#waiting.values()) entry.reject(error)
    this.#waiting.clear()
  }
}
