/**
 * Device tokens (OWASP, "Slow Down Online Guessing Attacks with Device Cookies"): a client that has logged in to an account shows its
 * token at the next login, and is counted by itself. A token is bound to its account, grants nothing, and is not stored:
 * `device.time.signature`, signed with the seal keys, so that every gateway reads it and rotation replaces it.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { Keyring } from '@spillway/client/queue-client'

const DEVICE_BYTES = 16
const TOKEN = /^([\w-]{22})\.(\d{10})\.([\w-]{43})$/
/** Clocks of gateways may be so far apart, in seconds: a token may come from the future. */
const CLOCK_TOLERANCE_S = 90

export interface KnownDevice {
  id: string
  /** Epoch seconds. */
  issuedAtS: number
}

export interface DeviceTokens {
  /** Makes a token of a new device of an account. */
  issue(account: string): string
  /** The device of a token; null unless it was issued for this account within its life. */
  read(account: string, token: string): KnownDevice | null
}

export function createDeviceTokens(
  keyring: Keyring,
  { ttlS, nowMs = Date.now }: { ttlS: number; nowMs?: () => number },
): DeviceTokens {
  const macsOf = (account: string, device: string, issuedAtS: string) =>
    keyring.macs({ purpose: 'device', id: JSON.stringify([account, device, issuedAtS]) })

  return {
    issue(account) {
      const device = randomBytes(DEVICE_BYTES).toString('base64url')
      const issuedAtS = String(Math.floor(nowMs() / 1_000))
      return `${device}.${issuedAtS}.${macsOf(account, device, issuedAtS)[0].toString('base64url')}`
    },

    read(account, token) {
      const [, device = '', issuedAtS = '', signature = ''] = TOKEN.exec(token) ?? []
      if (device === '') return null
      const ageS = nowMs() / 1_000 - Number(issuedAtS)
      if (ageS > ttlS || ageS < -CLOCK_TOLERANCE_S) return null
      const isOurs = isSignedBy(macsOf(account, device, issuedAtS), signature)
      return isOurs ? { id: device, issuedAtS: Number(issuedAtS) } : null
    },
  }
}

/** Whether a signature is one of these, compared in constant time. */
export function isSignedBy(macs: readonly Buffer[], signature: string): boolean {
  const given = Buffer.from(signature, 'base64url')
  return macs.some((mac) => given.length === mac.length && timingSafeEqual(given, mac))
}
