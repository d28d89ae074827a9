/** Ids: UUIDs of version 7 (RFC 9562, 5.7), which sort by time: an index grows at its end. */
import { randomBytes } from './seal.js'

/** The hexadecimal digits of version and variant, in front of 12 and 62 random bits. */
const VERSION = '7'
const VARIANTS = '89ab'

/** A new id, made at this time in milliseconds since 1970 [now]. */
export function newId(atMs = Date.now()): string {
  const random = randomBytes(10)
  const hex = random.toString('hex')
  const variant = VARIANTS.charAt((random[9] ?? 0) & 3)
  return `${timeOf(atMs)}-${VERSION}${hex.slice(0, 3)}-${variant}${hex.slice(3, 6)}-${hex.slice(6, 18)}`
}

/** The least id of a time; before 1970, the least id of all. */
export function firstIdAt(ms: number): string {
  return `${timeOf(Math.max(0, ms))}-7000-8000-000000000000`
}

function timeOf(ms: number): string {
  const hex = Math.floor(ms).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}`
}
