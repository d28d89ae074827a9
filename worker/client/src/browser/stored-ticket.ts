/** The ticket of a call over a reload of the page. The password is in memory alone. */

/** What is used of sessionStorage, or of a storage whose calls are promises (AsyncStorage). */
export interface TicketStorage {
  getItem(key: string): string | null | Promise<string | null>
  setItem(key: string, value: string): void | Promise<void>
  removeItem(key: string): void | Promise<void>
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

/** A ticket from what was stored, or from an answer and its times. Undefined where it has none. */
export function ticketFrom(fields: Readonly<Record<string, unknown>>): Ticket | undefined {
  const { ticket, redeemAt, etaAt, position, number, line, paused } = fields
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
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}

/** The ticket under a key; in memory alone where the storage is forbidden or full. */
export class StoredTicket {
  readonly #key: string
  readonly #given: TicketStorage | null | undefined
  #written: Promise<unknown> = Promise.resolve()

  /** @param given undefined is sessionStorage; null keeps it in memory */
  constructor(key: string, given: TicketStorage | null | undefined) {
    this.#key = key
    this.#given = given
  }

  async read(): Promise<Ticket | undefined> {
    return await this.#use(async (storage) =>
      ticketFrom(Object(JSON.parse((await storage.getItem(this.#key)) ?? '{}'))),
    )
  }

  keep(ticket: Ticket): void {
    this.#write((storage) => storage.setItem(this.#key, JSON.stringify(ticket)))
  }

  forget(): void {
    this.#write((storage) => storage.removeItem(this.#key))
  }

  /** After the write before it. Nobody waits for a slow storage. */
  #write(action: (storage: TicketStorage) => void | Promise<void>): void {
    this.#written = this.#written.then(() => this.#use(action))
  }

  async #use<T>(action: (storage: TicketStorage) => T | Promise<T>): Promise<T | undefined> {
    try {
      const storage = this.#given === undefined ? Reflect.get(globalThis, 'sessionStorage') : this.#given
      return storage ? await action(storage) : undefined
    } catch {
      return undefined
    }
  }
}
