/**
 * Device tokens (OWASP, "Slow Down Online Guessing Attacks with Device Cookies"): a client that has logged in to an account shows its
 * token at the next login, and is counted by itself. A token is bound to its account, grants nothing, and is not stored:
 * `device.milliseconds.signature`, signed with the seal keys, so that every gateway reads it and rotation replaces it. The id of a device
 * ends with a short signature of its own: an overloaded gateway knows a device by it before it has read for which account.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { Keyring } from '@spillway/client/queue-client'

const RANDOM_BYTES = 10
/** One in 2^48 guesses of an id is right, and gets its request before others at an overloaded gateway, once. */
const MARK_BYTES = 6
/** The version before wrote seconds: such a token counts as issued when its second began. */
const TOKEN = /^([\w-]{22})\.(\d{10}|\d{13})\.([\w-]{43})$/
const SECONDS_LENGTH = 10
/** Clocks of gateways may be so far apart, in seconds: a token may come from the future. */
export const CLOCK_TOLERANCE_S = 90

export interface KnownDevice {
  id: string
  /** Epoch milliseconds. */
  issuedAtMs: number
  /** The place of the key that signed it on the list of seal keys. */
  keyIndex: number
}

export interface DeviceTokens {
  /** Makes a token of a new device of an account. */
  issue(account: string): string
  /** The device of a token; null unless it was issued for this account within its life. */
  read(account: string, token: string): KnownDevice | null
  /**
   * The device of a token that was issued for some account within its life; undefined for others, and for those of versions before.
   * Takes some ten microseconds.
   */
  recognize(token: string): string | undefined
}

interface TokenParts {
  device: string
  /** As the token has it, and as it is signed. */
  issuedAt: string
  issuedAtMs: number
  signature: string
}

export function createDeviceTokens(
  keyring: Keyring,
  { ttlS, nowMs = Date.now }: { ttlS: number; nowMs?: () => number },
): DeviceTokens {
  const macsOf = (account: string, device: string, issuedAt: string) =>
    keyring.macs({ purpose: 'device', id: JSON.stringify([account, device, issuedAt]) })
  const marksOf = (random: Buffer, issuedAt: string) =>
    keyring
      .macs({ purpose: 'device-id', id: `${random.toString('base64url')}.${issuedAt}` })
      .map((mac) => mac.subarray(0, MARK_BYTES))

  /** The parts of a token whose time says that it is good. */
  function parse(token: string): TokenParts | undefined {
    const [, device = '', issuedAt = '', signature = ''] = TOKEN.exec(token) ?? []
    const issuedAtMs = Number(issuedAt) * (issuedAt.length === SECONDS_LENGTH ? 1_000 : 1)
    const ageMs = nowMs() - issuedAtMs
    if (device === '' || ageMs > ttlS * 1_000 || ageMs < -CLOCK_TOLERANCE_S * 1_000) return undefined
    return { device, issuedAt, issuedAtMs, signature }
  }

  return {
    issue(account) {
      const random = randomBytes(RANDOM_BYTES)
      const issuedAt = String(nowMs())
      const device = Buffer.concat([random, ...marksOf(random, issuedAt).slice(0, 1)]).toString('base64url')
      return `${device}.${issuedAt}.${macsOf(account, device, issuedAt)[0].toString('base64url')}`
    },

    read(account, token) {
      const parts = parse(token)
      if (parts === undefined) return null
      const { device, issuedAt, issuedAtMs, signature } = parts
      const keyIndex = signerOf(macsOf(account, device, issuedAt), signature)
      return keyIndex === -1 ? null : { id: device, issuedAtMs, keyIndex }
    },

    recognize(token) {
      const parts = parse(token)
      if (parts === undefined) return undefined
      const id = Buffer.from(parts.device, 'base64url')
      const [random, mark] = [id.subarray(0, RANDOM_BYTES), id.subarray(RANDOM_BYTES)]
      const isOurs = marksOf(random, parts.issuedAt).some((each) => timingSafeEqual(each, mark))
      // Not as it was sent: several texts stand for the same bytes.
      return isOurs ? id.toString('base64url') : undefined
    },
  }
}

/** Which of these a signature is, compared in constant time; -1 for none. */
export function signerOf(macs: readonly Buffer[], signature: string): number {
  const given = Buffer.from(signature, 'base64url')
  return macs.findIndex((mac) => given.length === mac.length && timingSafeEqual(given, mac))
}
