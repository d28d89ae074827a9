/** The outcomes of requests, for the live page, `pnpm load spike` and the load report. */

export type RequestOutcome = 'answered' | 'ticket' | 'rejected' | 'refused' | 'failed'

/** Codes of refusals: the same request may succeed later. Any other 503 is a failure. */
const REFUSALS = ['busy', 'too_many_requests']

/**
 * The outcome of a request, by its status and the code of its problem. A 503 or 429 without a code
 * comes from another server, and counts as refused.
 */
export function outcomeOf(status: number, code?: string): RequestOutcome {
  if (status === 202) return 'ticket'
  if (status < 400) return 'answered'
  if (code === undefined ? status === 429 || status === 503 : REFUSALS.includes(code)) return 'refused'
  return status < 500 ? 'rejected' : 'failed'
}
