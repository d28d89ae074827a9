/**
 * Whether one Redis server of several can be given jobs. It cannot be used without a connection, while its load is unknown, or when a
 * reading of the load is not answered. After a refused write (full, read-only) it cannot be used until it takes a small write of ours.
 */

export const TICK_MS = 100
/** A reading that is still under way after so many ticks: Redis is silent. Counted in ticks, because a busy event loop delays both. */
const SILENT_TICKS = 4
/** Jobs are left where they are for so many ticks: a connection that breaks is often back at once. */
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

export interface Health {
  isUsable(): boolean
  /** Usable, and workers take jobs there. */
  isServed(): boolean
  /** Whether it has not been served for so long that waiting jobs are better moved. */
  isOut(): boolean
  /** How long it has not been usable, in milliseconds. */
  unusableMs(): number
  /** A write was refused. */
  refused(): void
  /** To be called every {@link TICK_MS}. */
  tick(): void
}

export function createHealth(signals: HealthSignals): Health {
  let lastReading: number | undefined
  let silentTicks = 0
  let outTicks = 0
  let unusableTicks = 0
  let isRefusing = false
  let isProbing = false

  const isUsable = (): boolean => signals.isReady() && signals.isKnown() && silentTicks < SILENT_TICKS && !isRefusing
  const isServed = (): boolean => isUsable() && signals.hasWorkers()

  async function probe(): Promise<void> {
    isProbing = true
    isRefusing = await signals.probe().then(
      () => false,
      () => true,
    )
    isProbing = false
  }

  return {
    isUsable,
    isServed,
    isOut: () => outTicks >= PATIENT_TICKS && !isServed(),
    unusableMs: () => unusableTicks * TICK_MS,
    refused() {
      isRefusing = true
    },
    tick() {
      const reading = signals.reading()
      silentTicks = reading !== undefined && reading === lastReading ? silentTicks + 1 : 0
      lastReading = reading
      if (isRefusing && !isProbing && signals.isReady()) void probe()
      unusableTicks = isUsable() ? 0 : unusableTicks + 1
      outTicks = isServed() ? 0 : outTicks + 1
    },
  }
}
