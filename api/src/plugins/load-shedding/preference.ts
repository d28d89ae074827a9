/**
 * Prefers some new requests while this gateway is behind. Known devices get at most half of the
 * throughput, each one request a second: collected tokens cannot crowd out everyone else. Light
 * requests, which use neither PostgreSQL nor Redis, get a tenth.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { TokenBucket } from '../token-bucket.js'

const PERIOD_MS = 1_000
/** Of the requests that the gateway answers in a period. */
const DEVICES_SHARE = 0.5
const LIGHT_SHARE = 0.1
/** The least of each, because the throughput is unknown when a burst begins. */
const LEAST = 16

/** The device whose token a request's head shows; undefined for an unknown device. */
export type DeviceOf = (headers: IncomingHttpHeaders) => string | undefined

interface PreferenceOptions {
  deviceOf: DeviceOf
  /** Requests that this gateway answers in a second. */
  perSecond(): number
  now?(): number
}

/** Counts what it prefers: to be asked once for a request. */
export class Preference {
  readonly #options: Required<PreferenceOptions>
  readonly #devices = new Set<string>()
  #light = 0
  #startedMs: number

  constructor({ now = () => performance.now(), ...options }: PreferenceOptions) {
    this.#options = { ...options, now }
    this.#startedMs = now()
  }

  prefersDevice(headers: IncomingHttpHeaders): boolean {
    this.#beginPeriod()
    if (!this.#hasRoom(DEVICES_SHARE, this.#devices.size)) return false
    const device = this.#options.deviceOf(headers)
    if (device === undefined || this.#devices.has(device)) return false
    this.#devices.add(device)
    return true
  }

  prefersLight(): boolean {
    this.#beginPeriod()
    if (!this.#hasRoom(LIGHT_SHARE, this.#light)) return false
    this.#light++
    return true
  }

  #beginPeriod(): void {
    const nowMs = this.#options.now()
    if (nowMs - this.#startedMs < PERIOD_MS) return
    this.#startedMs = nowMs
    this.#devices.clear()
    this.#light = 0
  }

  #hasRoom(share: number, preferred: number): boolean {
    return preferred < Math.max(LEAST, share * this.#options.perSecond())
  }
}

/** Promised requests that begin in a millisecond, beside as many as the gateway answers. */
const MORE_PER_MS = 0.2
/** The most at once. */
const MOST = 32

/**
 * The promised requests that may begin in an overload: anybody can claim to continue something. A
 * flood of them makes turns of the event loop long: with 2,300 redemptions of made-up tickets a
 * second, 26 logins of 690 were left.
 *
 * @param perMs throughput, in requests a millisecond
 */
export function promisedShare(perMs: () => number, now: () => number): TokenBucket {
  return new TokenBucket(MOST, () => perMs() + MORE_PER_MS, now)
}
