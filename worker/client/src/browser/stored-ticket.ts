/** The ticket of a call, where it outlives a reload of the page. The password is in memory alone. */

/** What is used of sessionStorage. */
export interface TicketStorage {
  getItem(key: string): string | null
  setItem(key: string, value: string): void
  removeItem(key: string): void
}

export interface Ticket {
  ticket: string
  /** When to redeem it, and when its answer is expected, in epoch milliseconds. */
  redeemAt: number
  etaAt: number | undefined
  position: number | undefined
  /** Its place in line, and the name of that. */
  number: number | undefined
  line: string | undefined
  /** Whether operators have paused that line. */
  paused: boolean
}

export type StoredTicket = ReturnType<typeof storedTicket>

/**
 * The ticket under this key. Storages fail, for instance where a browser forbids or has filled them: the ticket is then in memory alone.
 *
 * @param given undefined is sessionStorage; null keeps it in memory
 */
export function storedTicket(key: string, given: TicketStorage | null | undefined) {
  const use = <T>(action: (storage: TicketStorage) => T): T | undefined => {
    try {
      const storage: TicketStorage | null | undefined =
        given === undefined ? Reflect.get(globalThis, 'sessionStorage') : given
      return storage ? action(storage) : undefined
    } catch {
      return undefined
    }
  }
  return {
    read: (): Ticket | undefined =>
      use((storage) => {
        const { ticket, redeemAt, etaAt, position, number, line, paused } = JSON.parse(storage.getItem(key) ?? '{}')
        if (typeof ticket !== 'string') return undefined
        return {
          ticket,
          redeemAt: Number(redeemAt),
          etaAt: numberOf(etaAt),
          position: numberOf(position),
          number: numberOf(number),
          line: typeof line === 'string' ? line : undefined,
          paused: paused === true,
        }
      }),
    keep: (ticket: Ticket) => use((storage) => storage.setItem(key, JSON.stringify(ticket))),
    forget: () => use((storage) => storage.removeItem(key)),
  }
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
