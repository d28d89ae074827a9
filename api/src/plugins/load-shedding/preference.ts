/**
 * Prefers some new requests while this gateway is behind. Known devices get at most half of the throughput, and each device one request a
 * second: stolen or collected tokens cannot crowd out everyone else. Light requests get a tenth: they use neither PostgreSQL nor Redis,
 * and would otherwise wait for the logins before them.
 */
import type { IncomingHttpHeaders } from 'node:http'

const PERIOD_MS = 1_000
/** Of the requests that the gateway answers in a period. */
const DEVICES_SHARE = 0.5
const LIGHT_SHARE = 0.1
/** The least of each, because the throughput is unknown when a burst begins. */
const LEAST = 16

/** The device that a request shows a token of, told from its head alone; undefined for an unknown device. */
export type DeviceOf = (headers: IncomingHttpHeaders) => string | undefined

export interface PreferenceOptions {
  deviceOf: DeviceOf
  /** Requests that this gateway answers in a second. */
  perSecond(): number
  now?(): number
}

/** Both count what they prefer: they are to be asked once for a request. */
export interface Preference {
  prefersDevice(headers: IncomingHttpHeaders): boolean
  prefersLight(): boolean
}

export function createPreference({
  deviceOf,
  perSecond,
  now = () => performance.now(),
}: PreferenceOptions): Preference {
  const devices = new Set<string>()
  let light = 0
  let startedMs = now()

  function hasRoom(share: number, preferred: number): boolean {
    if (now() - startedMs >= PERIOD_MS) {
      startedMs = now()
      devices.clear()
      light = 0
      return true
    }
    return preferred < Math.max(LEAST, share * perSecond())
  }

  return {
    prefersDevice(headers) {
      if (!hasRoom(DEVICES_SHARE, devices.size)) return false
      const device = deviceOf(headers)
      if (device === undefined || devices.has(device)) return false
      devices.add(device)
      return true
    },
    prefersLight() {
      if (!hasRoom(LIGHT_SHARE, light)) return false
      light++
      return true
    },
  }
}

// How many promised requests begin in an overload: anybody can claim to continue something. Without a limit, a flood of cheap ones makes
// turns of the event loop long. Each answer of PostgreSQL then comes late, and its connections are in use for longer: with 2,300
// redemptions of made-up tickets a second, 26 logins of 690 were left.

/** Begin in a millisecond, beside as many as the gateway answers. */
const MORE_PER_MS = 0.2
/** The most at once. */
const MOST = 32

export interface PromisedShare {
  hasLeft(): boolean
  /** One has begun. */
  taken(): void
  refill(nowMs: number): void
}

/** @param perMs throughput, in requests a millisecond */
export function createPromisedShare(startMs: number, perMs: () => number): PromisedShare {
  let left = MOST
  let refilledMs = startMs
  return {
    hasLeft: () => left >= 1,
    taken() {
      left = Math.max(0, left - 1)
    },
    refill(nowMs) {
      left = Math.min(MOST, left + (perMs() + MORE_PER_MS) * (nowMs - refilledMs))
      refilledMs = nowMs
    },
  }
}
