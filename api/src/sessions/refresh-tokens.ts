/**
 * Refresh tokens: `<session>.<family>.<secret>`. All tokens of a family share its part, by which a dead one is known without being
 * kept: only who held a token of the session knows it. Each secret but the first is derived from the token before it, so that
 * whoever shows the same token twice can be given the same successor, though only digests are stored.
 */
import { createHash, createHmac, randomBytes } from 'node:crypto'

/** 128 bits, as much as a session id; and twice that for what opens a session. */
const FAMILY_BYTES = 16
const SECRET_BYTES = 32
const SALT_BYTES = 32

const TOKEN = /^([\w-]{22})\.([\w-]{22})\.[\w-]{43}$/

export type Digest = Uint8Array<ArrayBuffer>

/** What all tokens of a family have in common, and stands in the database. */
export interface Family {
  sessionId: string
  familyHash: Digest
}

/** The first token of a new family of a session. */
export function newRefreshToken(sessionId: string): string {
  const session = Buffer.from(sessionId.replaceAll('-', ''), 'hex').toString('base64url')
  return `${session}.${random(FAMILY_BYTES)}.${random(SECRET_BYTES)}`
}

/** The family that a token says it is of; undefined for what has not the form of a token. */
export function familyOf(token: string): Family | undefined {
  const [, session, family] = TOKEN.exec(token) ?? []
  if (session === undefined || family === undefined) return undefined
  const hex = Buffer.from(session, 'base64url').toString('hex')
  return { sessionId: hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'), familyHash: digest(family) }
}

export function newSalt(): Digest {
  return new Uint8Array(randomBytes(SALT_BYTES))
}

/**
 * The token that takes the place of this one. A reader of the database, who has the salt and the digests, cannot tell it, nor can
 * the holder of the token, who has not the salt.
 */
export function successorOf(token: string, salt: Uint8Array): string {
  const family = token.slice(0, token.lastIndexOf('.'))
  return `${family}.${createHmac('sha256', token).update(salt).digest('base64url')}`
}

/** SHA-256: what nobody can guess needs no slow hash. */
export function digest(text: string): Digest {
  return new Uint8Array(createHash('sha256').update(text).digest())
}

function random(bytes: number): string {
  return randomBytes(bytes).toString('base64url')
}

/** A name for the session of a token: a digest of what its tokens share, or of a token that shares nothing. */
export function sessionNameOf(token: string): string {
  return Buffer.from(familyOf(token)?.familyHash ?? digest(token)).toString('base64url')
}
