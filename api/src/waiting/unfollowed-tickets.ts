/**
 * Tickets of logins that nobody came for, as far as this gateway knows. A client that logs in again in place of redeeming its ticket is not
 * expected to redeem the next one either: its job is hashed once the client comes, and not before. So loops that drop their tickets have
 * next to nothing hashed for nobody, and whoever comes loses no place.
 */
import type { Attempt } from '../guessing/guessing.js'

/** Clients that are remembered, each in some 300 bytes. */
const CLIENTS_MAX = 10_000

/** Who logs in: the same account from the same network. */
type Client = Pick<Attempt, 'account' | 'network'>

export interface UnfollowedTickets {
  /** Whether a ticket of this client waits to be redeemed. */
  has(client: Client): boolean
  given(client: Client, jobId: string, expiresAt: number): void
  /** Its client came. */
  redeemed(jobId: string): void
}

export function createUnfollowedTickets(now: () => number = () => Date.now()): UnfollowedTickets {
  /** The last ticket of each client, the oldest first. */
  const last = new Map<string, { jobId: string; expiresAt: number }>()
  const clients = new Map<string, string>()

  function forget(client: string): void {
    clients.delete(last.get(client)?.jobId ?? '')
    last.delete(client)
  }

  return {
    has: (client) => (last.get(nameOf(client))?.expiresAt ?? 0) > now(),
    given(client, jobId, expiresAt) {
      const name = nameOf(client)
      forget(name)
      last.set(name, { jobId, expiresAt })
      clients.set(jobId, name)
      for (const [oldest, ticket] of last) {
        if (last.size <= CLIENTS_MAX && ticket.expiresAt > now()) break
        forget(oldest)
      }
    },
    redeemed(jobId) {
      const client = clients.get(jobId)
      if (client !== undefined) forget(client)
    },
  }
}

function nameOf({ account, network }: Client): string {
  return `${account} ${network}`
}
