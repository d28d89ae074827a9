/** How long a request is held, as its client prefers (RFC 7240). */
import type { FastifyReply, FastifyRequest } from 'fastify'

/** The wait that a request asks for, within the limit. Sets Preference-Applied. */
export function negotiateWaitMs({ headers }: FastifyRequest, reply: FastifyReply, limitMs: number): number {
  const { waitMs: preferredMs, applied } = parsePrefer(headers.prefer)
  const waitMs = preferredWaitMs(preferredMs, limitMs)
  if (applied !== undefined && waitMs === preferredMs) reply.header('preference-applied', applied)
  return waitMs
}

/** How long a request may be held, in milliseconds: as its client prefers, up to the limit. */
export function preferredWaitMs(preferredMs: number | undefined, limitMs: number): number {
  return Math.min(preferredMs ?? limitMs, limitMs)
}

/**
 * The rest of a wait once the job is added, in milliseconds: reconnecting to Redis may have taken
 * two seconds. 0, a ticket at once, stays 0; other waits stay above 0.
 */
export function remainingWaitMs(waitMs: number, elapsedMs: number): number {
  return waitMs === 0 ? 0 : Math.max(1, waitMs - elapsedMs)
}

/** The headers schema of a route. Any text is valid: unknown preferences are ignored. */
export const PreferHeader = {
  type: 'object',
  properties: {
    Prefer: {
      type: 'string',
      description: '`wait=<seconds>`: hold the request for so long; `respond-async`: give a ticket at once (RFC 7240)',
    },
  },
} as const

interface WaitPreference {
  /** The wait that the client asks for, in milliseconds; undefined when it does not say. */
  waitMs: number | undefined
  /** The preferences that were applied, for Preference-Applied. */
  applied: string | undefined
}

/**
 * Parses `respond-async` and `wait=<seconds>`; ignores others, as the RFC requires. Both together
 * mean a ticket after that wait (RFC 7240, 4.3).
 */
export function parsePrefer(header: string | string[] | undefined): WaitPreference {
  const preferences = [header ?? []].flat().join(',').toLowerCase().split(',')
  const names = preferences.map((preference) => preference.split(';')[0]?.trim() ?? '')
  const async = names.filter((name) => name === 'respond-async').slice(0, 1)
  for (const name of names) {
    const seconds = /^wait\s*=\s*"?(\d{1,6})"?$/.exec(name)?.[1]
    if (seconds !== undefined) {
      return { waitMs: Number(seconds) * 1_000, applied: [...async, `wait=${seconds}`].join(', ') }
    }
  }
  return { waitMs: async.length > 0 ? 0 : undefined, applied: async[0] }
}
