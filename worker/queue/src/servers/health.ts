/**
 * Whether one Redis server of several can be given jobs: it is connected, its load is known and
 * read in time, and after a refused write (full, read-only) it took a small write of ours.
 */
import type { RedisServer } from '../redis/servers.js'
import { QueueClient } from '../wait/one-queue.js'
import type { QueueClientOptions } from '../wait/password-client.js'
import type { Load } from '../wire/capacity.js'

export const TICK_MS = 100
/** Ticks after which an unanswered reading means silence. A busy event loop delays both. */
const SILENT_TICKS = 4
/** Ticks for which jobs stay: a connection that breaks is often back at once. */
const PATIENT_TICKS = 2

/** What is asked of the client of a server. */
export interface Watched extends Pick<QueueClient, 'isReady' | 'probe'> {
  load(): Pick<Load, 'known' | 'jobsPerSecond'>
  reader: Pick<QueueClient['reader'], 'readingUnderway'>
}

export class Health {
  readonly #client: Watched
  #lastReading: number | undefined
  #silentTicks = 0
  #outTicks = 0
  #unusableTicks = 0
  #isRefusing = false
  #isProbing = false

  constructor(client: Watched) {
    this.#client = client
  }

  isUsable(): boolean {
    const client = this.#client
    return client.isReady() && client.load().known && this.#silentTicks < SILENT_TICKS && !this.#isRefusing
  }

  /** Usable, and workers take jobs there. */
  isServed(): boolean {
    return this.isUsable() && this.#client.load().jobsPerSecond > 0
  }

  /** Whether it has not been served for so long that waiting jobs are better moved. */
  isOut(): boolean {
    return this.#outTicks >= PATIENT_TICKS && !this.isServed()
  }

  /** How long it has not been usable, in milliseconds. */
  unusableMs(): number {
    return this.#unusableTicks * TICK_MS
  }

  /** A write was refused. */
  refused(): void {
    this.#isRefusing = true
  }

  /** To be called every {@link TICK_MS}. */
  tick(): void {
    const reading = this.#client.reader.readingUnderway()
    this.#silentTicks = reading !== undefined && reading === this.#lastReading ? this.#silentTicks + 1 : 0
    this.#lastReading = reading
    if (this.#isRefusing && !this.#isProbing && this.#client.isReady()) void this.#probe()
    this.#unusableTicks = this.isUsable() ? 0 : this.#unusableTicks + 1
    this.#outTicks = this.isServed() ? 0 : this.#outTicks + 1
  }

  async #probe(): Promise<void> {
    this.#isProbing = true
    this.#isRefusing = await this.#client.probe().then(
      () => false,
      () => true,
    )
    this.#isProbing = false
  }
}

export interface OpenServer extends RedisServer {
  client: QueueClient
  health: Health
}

export function openServer(server: RedisServer, options: QueueClientOptions): OpenServer {
  const client = new QueueClient(server, options)
  return { ...server, client, health: new Health(client) }
}
