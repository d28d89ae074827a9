/**
 * Whether one Redis server of several can be given jobs: it is connected, its load is known and
 * read in time, and after a refused write (full, read-only) it took a small write of ours.
 */
import type { RedisServer } from '../redis/servers.js'
import { QueueClient } from '../wait/one-queue.js'
import type { QueueClientOptions } from '../wait/password-client.js'

export const TICK_MS = 100
/** Ticks after which an unanswered reading means silence. A busy event loop delays both. */
const SILENT_TICKS = 4
/** Ticks for which jobs stay: a connection that breaks is often back at once. */
const PATIENT_TICKS = 2

export interface HealthSignals {
  isReady(): boolean
  isKnown(): boolean
  /** The number of the reading that is under way. */
  reading(): number | undefined
  /** Whether workers take its jobs. */
  hasWorkers(): boolean
  probe(): Promise<unknown>
}

export class Health {
  readonly #signals: HealthSignals
  #lastReading: number | undefined
  #silentTicks = 0
  #outTicks = 0
  #unusableTicks = 0
  #isRefusing = false
  #isProbing = false

  constructor(signals: HealthSignals) {
    this.#signals = signals
  }

  isUsable(): boolean {
    const { isReady, isKnown } = this.#signals
    return isReady() && isKnown() && this.#silentTicks < SILENT_TICKS && !this.#isRefusing
  }

  /** Usable, and workers take jobs there. */
  isServed(): boolean {
    return this.isUsable() && this.#signals.hasWorkers()
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
    const reading = this.#signals.reading()
    this.#silentTicks = reading !== undefined && reading === this.#lastReading ? this.#silentTicks + 1 : 0
    this.#lastReading = reading
    if (this.#isRefusing && !this.#isProbing && this.#signals.isReady()) void this.#probe()
    this.#unusableTicks = this.isUsable() ? 0 : this.#unusableTicks + 1
    this.#outTicks = this.isServed() ? 0 : this.#outTicks + 1
  }

  async #probe(): Promise<void> {
    this.#isProbing = true
    this.#isRefusing = await this.#signals.probe().then(
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
  const health = new Health({
    isReady: () => client.isReady(),
    isKnown: () => client.load().known,
    reading: () => client.reader.readingUnderway(),
    hasWorkers: () => client.load().jobsPerSecond > 0,
    probe: () => client.probe(),
  })
  return { ...server, client, health }
}
