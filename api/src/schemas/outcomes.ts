/** The outcomes of requests, for metrics, the live page, `pnpm load spike` and the load report. */

/** In the order of the live page: in words, and how alarming many of them are. */
export const requestOutcomes = [
  { outcome: 'answered', words: 'answered', level: 'good' },
  { outcome: 'ticket', words: 'ticket: answer later', level: 'good' },
  { outcome: 'rejected', words: 'rejected: wrong password, bad input', level: 'good' },
  { outcome: 'refused', words: 'refused: limits, queue full', level: 'warn' },
  { outcome: 'overloaded', words: 'refused: gateway overloaded', level: 'warn' },
  { outcome: 'failed', words: 'failed', level: 'bad' },
  { outcome: 'gone', words: 'client went away', level: 'warn' },
] as const
export type RequestOutcome = (typeof requestOutcomes)[number]['outcome']

/** Codes of refusals: the same request may succeed later. Any other 503 is a failure. */
const REFUSALS = ['busy', 'too_many_requests', 'challenge_required']

/**
 * The outcome of a request by its status and the code of its problem. A 503 or 429 without a code,
 * of another server, counts as refused. Metrics tell an overloaded gateway from a full queue.
 */
export function outcomeOf(status: number, code?: string): RequestOutcome {
  if (status === 202) return 'ticket'
  if (status < 400) return 'answered'
  if (code === undefined ? status === 429 || status === 503 : REFUSALS.includes(code)) return 'refused'
  return status < 500 ? 'rejected' : 'failed'
}
