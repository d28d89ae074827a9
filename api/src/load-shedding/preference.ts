/**
 * Which new requests go before others while this gateway is behind: those of known devices. A device is preferred once a second, and all of
 * them together for at most half of what the gateway does, so that stolen or collected tokens cannot take it from everyone else.
 */
import type { IncomingHttpHeaders } from 'node:http'

const PERIOD_MS = 1_000
/** Of the requests that the gateway answers in a period. */
const SHARE = 0.5
/** The least, because the throughput is unknown when a burst begins. */
const LEAST = 16

/** The device that a request shows a token of, told from its head alone; undefined for none that is known. */
export type DeviceOf = (headers: IncomingHttpHeaders) => string | undefined

/** @param perSecond requests that this gateway answers in a second */
export function createPreference(
  deviceOf: DeviceOf,
  perSecond: () => number,
  now: () => number = () => performance.now(),
): (headers: IncomingHttpHeaders) => boolean {
  const preferred = new Set<string>()
  let startedMs = now()

  return (headers) => {
    if (now() - startedMs >= PERIOD_MS) {
      startedMs = now()
      preferred.clear()
    }
    if (preferred.size >= Math.max(LEAST, SHARE * perSecond())) return false
    const device = deviceOf(headers)
    if (device === undefined || preferred.has(device)) return false
    preferred.add(device)
    return true
  }
}
