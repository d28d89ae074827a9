/** Ids of audit events: UUIDs of version 7 (RFC 9562, 5.7). They sort by time, so that the primary key serves pages and retention. */
import { randomUUID } from 'node:crypto'

/** A new id for an event at this time, in milliseconds since 1970. */
export function eventIdAt(ms: number): string {
  return `${timeOf(ms)}-7${randomUUID().slice(15)}`
}

/** The smallest id of this time. */
export function firstEventIdAt(ms: number): string {
  return `${timeOf(ms)}-7000-8000-000000000000`
}

function timeOf(ms: number): string {
  const hex = Math.floor(ms).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}`
}
