/** The error of waiting calls. */
import type { Answer } from './send.js'

export class SpillwayError extends Error {
  override readonly name = 'SpillwayError'
  /** That of the problem (RFC 9457) which the gateway answered with; `gave_up`; `unexpected_answer` for what no gateway answers. */
  readonly code: string
  /** Of the last answer; 0 when there was none. */
  readonly status: number
  /** The body of that answer, if it is JSON: `errors` of `invalid_request`, for instance. */
  readonly problem: unknown
  /** When to try again at the earliest, in milliseconds, if the gateway told. */
  readonly retryAfterMs: number | undefined
  /** Whether only the ticket is lost: with the password the call can be made again. */
  readonly needsPassword: boolean

  constructor(code: string, answer?: Answer, needsPassword = false) {
    super(typeof answer?.body.detail === 'string' ? answer.body.detail : code)
    this.code = code
    this.status = answer?.status ?? 0
    this.problem = answer?.body
    this.retryAfterMs = answer?.retryAfterMs
    this.needsPassword = needsPassword
  }
}

/** The error of an answer that ends the call. */
export function errorOf(answer: Answer, needsPassword = false): SpillwayError {
  return new SpillwayError(codeOf(answer) ?? 'unexpected_answer', answer, needsPassword)
}

export function codeOf({ body }: Answer): string | undefined {
  return typeof body.code === 'string' ? body.code : undefined
}
