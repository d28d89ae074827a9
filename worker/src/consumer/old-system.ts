/**
 * The old system verifies passwords of addresses that are not here yet, and of accounts without a
 * hash. Questions to it have places and a queue of their own: a slow old system takes no capacity
 * of other logins. A full queue and an open circuit give no verdict.
 */
import { createHmac } from 'node:crypto'
import limitConcurrency, { type LimitFunction } from 'p-limit'

export interface OldSystemOptions {
  url: string
  key: Buffer
  /** Of a question, without its wait for a place. */
  timeoutMs: number
  /** Questions at a time. */
  concurrency: number
  /** Called with the outcome of each question, also of one that was not sent. */
  answered?(outcome: 'yes' | 'no' | 'unavailable'): void
}

/** Questions that wait, for each place: some answers' time, less than people wait. */
const WAITING_FOR_EACH = 4
/** A longer answer is refused. */
const ANSWER_MAX_BYTES = 4_096

export class OldSystem {
  readonly #options: OldSystemOptions
  readonly #places: LimitFunction
  readonly #breaker: CircuitBreaker
  readonly #now: () => number

  constructor(options: OldSystemOptions, now = () => performance.now()) {
    this.#options = options
    this.#places = limitConcurrency(options.concurrency)
    this.#breaker = new CircuitBreaker(now)
    this.#now = now
  }

  /**
   * Undefined, at once, when the queue is full or the circuit open. Otherwise resolves with the
   * answer, or with undefined without a timely one. Never rejects.
   */
  ask(email: string, password: string, signal?: AbortSignal): Promise<boolean | undefined> | undefined {
    const { concurrency, answered } = this.#options
    const isFull = this.#places.pendingCount >= concurrency * WAITING_FOR_EACH
    if (isFull || !this.#breaker.admits()) {
      answered?.('unavailable')
      return undefined
    }
    return this.#places(async () => {
      const answer = await this.#send({ email, password }, signal)
      answered?.(answer === undefined ? 'unavailable' : answer ? 'yes' : 'no')
      return answer
    })
  }

  async #send(question: { email: string; password: string }, deadline?: AbortSignal): Promise<boolean | undefined> {
    const { timeoutMs } = this.#options
    // It may have waited for its place until its deadline, or until the circuit opened.
    if (deadline?.aborted || !this.#breaker.admits()) return undefined
    const end = this.#breaker.begin()
    const timeout = AbortSignal.timeout(timeoutMs)
    const sentAt = this.#now()
    const signal = deadline ? AbortSignal.any([timeout, deadline]) : timeout
    const answer = await answerOf(this.#options, question, signal).catch(() => undefined)
    const isSlow = this.#now() - sentAt > timeoutMs * SLOW_SHARE
    // A question that its own deadline ended says nothing of the old system.
    const isCutOff = answer === undefined && deadline?.aborted === true && !timeout.aborted
    end(isCutOff ? 'cut_off' : answer === undefined ? 'failed' : isSlow ? 'slow' : 'timely')
    return answer
  }
}

/** An answer that takes a greater share of the timeout counts, but against the circuit. */
const SLOW_SHARE = 0.5
const BAD_MAX = 5
const LAST = 10
/** After a failure, while the circuit is open. */
const PAUSE_MS = 10_000

type QuestionEnd = 'timely' | 'slow' | 'failed' | 'cut_off'

/**
 * Opens when half of the last questions failed or were slow. While open, one question at a time is
 * asked. The first timely answer closes it: a slow old system gets fewer questions.
 */
class CircuitBreaker {
  readonly #now: () => number
  #wereBad: boolean[] = []
  #isOpen = false
  #isProbing = false
  #pausedUntil = 0

  constructor(now: () => number) {
    this.#now = now
  }

  /** Whether a question may be asked, or wait for its place. */
  admits(): boolean {
    return !this.#isOpen || (!this.#isProbing && this.#now() >= this.#pausedUntil)
  }

  /** A question is sent. Call the result with how it ended. */
  begin(): (how: QuestionEnd) => void {
    const isProbe = this.#isOpen
    this.#isProbing = isProbe
    return (how) => {
      if (isProbe) this.#isProbing = false
      if (how !== 'cut_off') this.#ended(how)
    }
  }

  #ended(how: Exclude<QuestionEnd, 'cut_off'>): void {
    if (how === 'timely' && this.#isOpen) {
      this.#isOpen = false
      this.#wereBad = []
      return
    }
    this.#wereBad = [...this.#wereBad, how !== 'timely'].slice(-LAST)
    if (this.#wereBad.filter(Boolean).length >= BAD_MAX) this.#isOpen = true
    if (this.#isOpen && how === 'failed') this.#pausedUntil = this.#now() + PAUSE_MS
  }
}

/** Undefined for every answer but 200 with `{"verified": true}` or `false`. */
async function answerOf(
  { url, key }: OldSystemOptions,
  question: { email: string; password: string },
  signal: AbortSignal,
): Promise<boolean | undefined> {
  const body = JSON.stringify(question)
  const timestamp = String(Math.floor(Date.now() / 1_000))
  const signature = createHmac('sha256', key).update(`${timestamp}.${body}`).digest('hex')
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      ...{ 'content-type': 'application/json', 'spillway-timestamp': timestamp },
      'spillway-signature': `v1=${signature}`,
    },
    body,
    redirect: 'error',
    signal,
  })
  const text = await textOf(response)
  if (response.status !== 200 || text === undefined) return undefined
  const answer: unknown = JSON.parse(text)
  if (typeof answer !== 'object' || answer === null || !('verified' in answer)) return undefined
  return typeof answer.verified === 'boolean' ? answer.verified : undefined
}

/** Undefined for a body that is too long. */
async function textOf(response: Response): Promise<string | undefined> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > ANSWER_MAX_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
