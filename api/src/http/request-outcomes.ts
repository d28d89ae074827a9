/** The outcomes of requests to the public API, in six classes, for the live page. */
import type { GatewayMetrics } from './metrics.js'

export const requestOutcomes = ['answered', 'ticket', 'rejected', 'refused', 'failed', 'gone'] as const
export type RequestOutcome = (typeof requestOutcomes)[number]
export type RequestOutcomes = Record<RequestOutcome, number>

export const noOutcomes: RequestOutcomes = { answered: 0, ticket: 0, rejected: 0, refused: 0, failed: 0, gone: 0 }

/** Counts of this gateway since it started. */
export async function countOutcomes({ requests }: Pick<GatewayMetrics, 'requests'>): Promise<RequestOutcomes> {
  const totals = { ...noOutcomes }
  for (const { labels, value } of (await requests.get()).values) {
    if (String(labels.route).startsWith('/v1/')) totals[classOf(String(labels.outcome), Number(labels.status))] += value
  }
  return totals
}

/** Combines two counts class by class. */
export function combineOutcomes(
  a: RequestOutcomes,
  b: RequestOutcomes,
  combine: (a: number, b: number) => number,
): RequestOutcomes {
  const result = { ...noOutcomes }
  for (const outcome of requestOutcomes) result[outcome] = combine(a[outcome], b[outcome])
  return result
}

function classOf(outcome: string, status: number): RequestOutcome {
  if (outcome === 'ticket') return 'ticket'
  if (outcome === 'client_gone') return 'gone'
  // Any other 503 means that PostgreSQL or Redis is not reachable: a failure.
  if (outcome === 'busy' || outcome === 'too_many_requests' || outcome === 'challenge_required') return 'refused'
  if (status < 400) return 'answered'
  return status < 500 ? 'rejected' : 'failed'
}
