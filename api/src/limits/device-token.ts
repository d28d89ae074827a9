/**
 * Device tokens (OWASP, "Slow Down Online Guessing Attacks with Device Cookies"): a client that has
 * logged in to an account sends its token with the next login, and is counted separately. A token
 * grants nothing and is not stored: `device.milliseconds.generation.signature`, signed with the
 * seal keys for its account.
 *
 * The generation depends on user and password: a new password makes every device unknown.
 */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Keyring } from '@spillway/queue/client'

const ID_BYTES = 16
/** Two generations are equal with a probability of 2^-48, which allows one more guess. */
const GENERATION_BYTES = 6
const TOKEN = /^([\w-]{22})\.(\d{13})\.([\w-]{8})\.([\w-]{43})$/
/** Seconds that a token may be ahead: after a failover, Redis's clock may be behind. */
const CLOCK_TOLERANCE_S = 90

export interface KnownDevice {
  id: string
  /** The generation of the account when the token was issued. */
  generation: string
}

export function generationOf(user: { userId: string; credentialVersion: number }): string {
  const digest = hash('sha256', `${user.userId} ${user.credentialVersion}`, 'buffer')
  return digest.subarray(0, GENERATION_BYTES).toString('base64url')
}

export class DeviceTokens {
  readonly #keyring: Keyring
  readonly #ttlS: number
  readonly #nowMs: () => number

  /** @param options.nowMs Redis's clock */
  constructor(keyring: Keyring, { ttlS, nowMs }: { ttlS: number; nowMs(): number }) {
    this.#keyring = keyring
    this.#ttlS = ttlS
    this.#nowMs = nowMs
  }

  /** Issues a token for a new device. */
  issue(account: string, generation: string): string {
    const device = randomBytes(ID_BYTES).toString('base64url')
    const issuedAt = String(this.#nowMs())
    const [signature] = this.#macsOf(account, device, issuedAt, generation)
    return `${device}.${issuedAt}.${generation}.${signature.toString('base64url')}`
  }

  /** The device of a token; null unless it was issued for this account within its life. */
  read(account: string, token: string): KnownDevice | null {
    const [, id = '', issuedAt = '', generation = '', signature = ''] = TOKEN.exec(token) ?? []
    const ageMs = this.#nowMs() - Number(issuedAt)
    if (id === '' || ageMs > this.#ttlS * 1_000 || ageMs < -CLOCK_TOLERANCE_S * 1_000) return null
    return isSigned(this.#macsOf(account, id, issuedAt, generation), signature) ? { id, generation } : null
  }

  #macsOf(...signed: [account: string, device: string, issuedAt: string, generation: string]) {
    return this.#keyring.macs({ purpose: 'device', id: JSON.stringify(signed) })
  }
}

/** Whether a signature equals one of these. Each is compared in constant time. */
export function isSigned(macs: readonly Buffer[], signature: string): boolean {
  const given = Buffer.from(signature, 'base64url')
  return macs.some((mac) => given.length === mac.length && timingSafeEqual(given, mac))
}

/** Browsers accept the prefix only over TLS, and only from this host (RFC 6265bis, 4.1.3.2). */
export const DEVICE_COOKIE = '__Host-spillway-device'
const IN_COOKIES = new RegExp(`(?:^|; *)${DEVICE_COOKIE}=([\\w.-]+)`)

/** The token in the header of a request, or in its cookie; empty if it has no token. */
export function deviceTokenOf(headers: IncomingHttpHeaders): string {
  const sent = headers['spillway-device']
  if (typeof sent === 'string') return sent
  return IN_COOKIES.exec(headers.cookie ?? '')?.[1] ?? ''
}
