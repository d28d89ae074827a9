// One person of a spike: an account and an address of their own, and the manners of a good client.
import { type ApiClient, redeemUntilAnswered } from '@spillway/local/testing/api-client'
import { seedEmail } from '@spillway/prisma/seed'

/**
 * What becomes of a person: let in by the first answer or with a ticket, told to come back later (503), stopped by a limit (429), not
 * known (401), left with a ticket that nobody redeems any more (410, or the end of the test), or anything else.
 */
export const ends = ['atOnce', 'byTicket', 'busy', 'limited', 'unknown', 'expired', 'error'] as const
export type End = (typeof ends)[number]

export interface Crowd {
  client: ApiClient
  /** How many accounts `pnpm seed` made; people beyond that share them. */
  users: number
  password: string
  /** Ends all that wait. */
  signal: AbortSignal
}

/** Redeeming is never more frequent, whatever Retry-After says. */
const PAUSE_MIN_MS = 200

const endOf: Record<number, End> = { 200: 'atOnce', 401: 'unknown', 410: 'expired', 429: 'limited', 503: 'busy' }

/** Logs in as the person of this number; with a ticket, until there is an answer. Never rejects. */
export async function visit({ client, users, password, signal }: Crowd, person: number): Promise<End> {
  const options = { headers: { 'x-forwarded-for': addressOf(person) } }
  const first = await client.login({ email: seedEmail((person % users) + 1), password }, options)
  if (first.status !== 202) return endOf[first.status] ?? 'error'
  const { status } = await redeemUntilAnswered(first, {
    redeem: (ticket) => client.redeem(ticket, options),
    pauseMs: ({ retryAfterMs }) => Math.max(retryAfterMs, PAUSE_MIN_MS),
    signal,
  })
  if (status === 200) return 'byTicket'
  return status === 202 ? 'expired' : (endOf[status] ?? 'error')
}

/** Of the range that is set aside for load tests (RFC 2544): 131,072 of them. */
function addressOf(person: number): string {
  return `198.${18 + ((person >> 16) & 1)}.${(person >> 8) & 255}.${person & 255}`
}
