/**
 * Refresh tokens: `<session>.<family>.<secret>`. The family identifies a used token without storing
 * it, because only a holder of an earlier token knows it. Each secret except the first is derived
 * from the previous token. So a token can return the same successor again, although only digests
 * are stored.
 *
 * A client holds `<token>.<tag>`. The tag is signed with the seal keys, so that made-up tokens are
 * refused from memory. It authenticates nothing: gateways with other keys know the same digests.
 */
import { createHmac, hash, randomBytes } from 'node:crypto'
import type { Keyring } from '@spillway/queue/client'
import { isSigned } from '../limits/device-token.js'

/** 128 bits for the family, as for a session id; 256 bits for the secret, which authenticates. */
const FAMILY_BYTES = 16
const SECRET_BYTES = 32
const SALT_BYTES = 32

const TOKEN = /^([\w-]{22})\.([\w-]{22})\.[\w-]{43}$/

export type Digest = Uint8Array<ArrayBuffer>

/** Only one guess in 2^128 reaches the database. */
const TAG_BYTES = 16
const TAGGED = /^(.{89})\.([\w-]{22})$/

export class RefreshTokenTags {
  readonly #keyring: Keyring

  constructor(keyring: Keyring) {
    this.#keyring = keyring
  }

  /** The token as a client gets it. */
  tag(token: string): string {
    return `${token}.${this.#tagsOf(token)[0].toString('base64url')}`
  }

  /** The token in a text from a client; undefined unless one of these keys tagged it. */
  untag(shown: string): string | undefined {
    const [, token, tag] = TAGGED.exec(shown) ?? []
    if (token === undefined || tag === undefined) return undefined
    return isSigned(this.#tagsOf(token), tag) ? token : undefined
  }

  #tagsOf(token: string): [Buffer, ...Buffer[]] {
    const [first, ...others] = this.#keyring.macs({ purpose: 'refresh-token', id: token })
    return [first.subarray(0, TAG_BYTES), ...others.map((mac) => mac.subarray(0, TAG_BYTES))]
  }
}

/** The parts that all tokens of a family share, as stored in the database. */
export interface Family {
  sessionId: string
  familyHash: Digest
}

/** The first token of a new family of a session. */
export function newRefreshToken(sessionId: string): string {
  const session = Buffer.from(sessionId.replaceAll('-', ''), 'hex').toString('base64url')
  return `${session}.${random(FAMILY_BYTES)}.${random(SECRET_BYTES)}`
}

/** The family that a token claims; undefined for a text of another format. */
export function familyOf(token: string): Family | undefined {
  const [, session, family] = TOKEN.exec(token) ?? []
  if (session === undefined || family === undefined) return undefined
  const hex = Buffer.from(session, 'base64url').toString('hex')
  return { sessionId: hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'), familyHash: digest(family) }
}

export function newSalt(): Digest {
  return randomBytes(SALT_BYTES)
}

/**
 * The successor of a token. A reader of the database has the salt and digests, and the holder of
 * the token lacks the salt: neither can compute it.
 */
export function successorOf(token: string, salt: Uint8Array): string {
  const family = token.slice(0, token.lastIndexOf('.'))
  return `${family}.${createHmac('sha256', token).update(salt).digest('base64url')}`
}

/** SHA-256: random tokens cannot be guessed, so they need no slow hash. */
export function digest(text: string): Digest {
  return hash('sha256', text, 'buffer')
}

function random(bytes: number): string {
  return randomBytes(bytes).toString('base64url')
}

/** A name for the session of a token, with or without its tag: the digest of its family. */
export function sessionNameOf(token: string): string {
  return Buffer.from(digest(token.split('.')[1] ?? '')).toString('base64url')
}
