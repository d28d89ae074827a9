/** Ids: UUIDs of version 7 (RFC 9562, 5.7), which sort by time: an index grows at its end. */
import { randomUUID } from 'node:crypto'

/** A new id, made at this time in milliseconds since 1970 [now]. */
export function newId(atMs = Date.now()): string {
  // The version, and from a UUID of version 4 the random bits with the same variant.
  return `${timeOf(atMs)}-7${randomUUID().slice('xxxxxxxx-xxxx-4'.length)}`
}

/** The least id of a time; before 1970, the least id of all. */
export function firstIdAt(ms: number): string {
  return `${timeOf(Math.max(0, ms))}-7000-8000-000000000000`
}

function timeOf(ms: number): string {
  const hex = Math.floor(ms).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}`
}
