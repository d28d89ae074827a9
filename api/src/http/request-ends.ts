/** What became of the requests of the public API, in the few words that a look at a gateway needs. */
import type { GatewayMetrics } from './metrics.js'

export const requestEnds = ['answered', 'ticket', 'rejected', 'refused', 'failed', 'gone'] as const
export type RequestEnd = (typeof requestEnds)[number]
export type RequestEnds = Record<RequestEnd, number>

export const noEnds: RequestEnds = { answered: 0, ticket: 0, rejected: 0, refused: 0, failed: 0, gone: 0 }

/** Of a gateway, since it started. */
export async function countEnds({ requests }: Pick<GatewayMetrics, 'requests'>): Promise<RequestEnds> {
  const totals = { ...noEnds }
  for (const { labels, value } of (await requests.get()).values) {
    if (String(labels.route).startsWith('/v1/')) totals[endOf(String(labels.outcome), Number(labels.status))] += value
  }
  return totals
}

/** Each end of the one put together with the same end of the other. */
export function zipEnds(a: RequestEnds, b: RequestEnds, put: (a: number, b: number) => number): RequestEnds {
  const result = { ...noEnds }
  for (const end of requestEnds) result[end] = put(a[end], b[end])
  return result
}

function endOf(outcome: string, status: number): RequestEnd {
  if (outcome === 'ticket') return 'ticket'
  if (outcome === 'client_gone') return 'gone'
  // These are said on purpose; any other 503 is that of a part that is not reachable.
  if (outcome === 'busy' || outcome === 'too_many_requests') return 'refused'
  if (status < 400) return 'answered'
  return status < 500 ? 'rejected' : 'failed'
}
