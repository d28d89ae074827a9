/**
 * Device tokens (OWASP, "Slow Down Online Guessing Attacks with Device Cookies"): a client that has
 * logged in to an account shows its token at the next login, and is counted separately. A token
 * grants nothing and is not stored: `device.milliseconds.generation.signature`, signed with the seal
 * keys for its account. The id of a device ends with a short signature of its own, by which an
 * overloaded gateway recognizes it before it reads the account.
 *
 * The generation stands for user and password: a new password makes every device unknown.
 */
import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Keyring } from '@spillway/queue/queue-client'
import { randomBytes } from '@spillway/queue/wire/seal'

const RANDOM_BYTES = 10
/** One in 2^48 guesses of an id is right, and gets one request before others in an overload. */
const MARK_BYTES = 6
/** Two generations of an account are the same by one chance in 2^48: one more guess, then. */
const GENERATION_BYTES = 6
const TOKEN = /^([\w-]{22})\.(\d{13})\.([\w-]{8})\.([\w-]{43})$/
/** A token may come from the future by so many seconds: several Redis servers' clocks differ. */
const CLOCK_TOLERANCE_S = 90

export interface KnownDevice {
  id: string
  /** Of the account when the token was issued. */
  generation: string
}

interface TokenParts {
  device: string
  /** As it stands in the token, and is signed. */
  issuedAt: string
  generation: string
  signature: string
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

  /** A token of a new device. */
  issue(account: string, generation: string): string {
    const random = randomBytes(RANDOM_BYTES)
    const issuedAt = String(this.#nowMs())
    const device = Buffer.concat([random, ...this.#marksOf(random, issuedAt).slice(0, 1)]).toString('base64url')
    const [signature] = this.#macsOf(account, device, issuedAt, generation)
    return `${device}.${issuedAt}.${generation}.${signature.toString('base64url')}`
  }

  /** The device of a token; null unless it was issued for this account within its life. */
  read(account: string, token: string): KnownDevice | null {
    const parts = this.#parse(token)
    if (parts === undefined) return null
    const { device, issuedAt, generation, signature } = parts
    const macs = this.#macsOf(account, device, issuedAt, generation)
    return isSigned(macs, signature) ? { id: device, generation } : null
  }

  /** The device of a token that was issued for any account, in some ten microseconds. */
  recognize(token: string): string | undefined {
    const parts = this.#parse(token)
    if (parts === undefined) return undefined
    const id = Buffer.from(parts.device, 'base64url')
    const [random, mark] = [id.subarray(0, RANDOM_BYTES), id.subarray(RANDOM_BYTES)]
    const isOurs = this.#marksOf(random, parts.issuedAt).some((each) => timingSafeEqual(each, mark))
    // Not as it was sent: several texts stand for the same bytes.
    return isOurs ? id.toString('base64url') : undefined
  }

  /** The parts of a token whose time says that it is good. */
  #parse(token: string): TokenParts | undefined {
    const [, device = '', issuedAt = '', generation = '', signature = ''] = TOKEN.exec(token) ?? []
    const ageMs = this.#nowMs() - Number(issuedAt)
    if (device === '' || ageMs > this.#ttlS * 1_000 || ageMs < -CLOCK_TOLERANCE_S * 1_000) return undefined
    return { device, issuedAt, generation, signature }
  }

  #macsOf(...signed: [account: string, device: string, issuedAt: string, generation: string]) {
    return this.#keyring.macs({ purpose: 'device', id: JSON.stringify(signed) })
  }

  #marksOf(random: Buffer, issuedAt: string): Buffer[] {
    const id = `${random.toString('base64url')}.${issuedAt}`
    return this.#keyring.macs({ purpose: 'device-id', id }).map((mac) => mac.subarray(0, MARK_BYTES))
  }
}

/** Whether a signature is one of these, each compared in constant time. */
export function isSigned(macs: readonly Buffer[], signature: string): boolean {
  const given = Buffer.from(signature, 'base64url')
  return macs.some((mac) => given.length === mac.length && timingSafeEqual(given, mac))
}

/** Browsers accept the prefix over TLS alone, and from this host alone (RFC 6265bis, 4.1.3.2). */
export const DEVICE_COOKIE = '__Host-spillway-device'
const IN_COOKIES = new RegExp(`(?:^|; *)${DEVICE_COOKIE}=([\\w.-]+)`)

/** The token of a request, from its header or else its cookie; empty without one. */
export function deviceTokenOf(headers: IncomingHttpHeaders): string {
  const sent = headers['spillway-device']
  if (typeof sent === 'string') return sent
  return IN_COOKIES.exec(headers.cookie ?? '')?.[1] ?? ''
}
