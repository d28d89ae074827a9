/** How long a request is held, as its client prefers (RFC 7240). */
import type { FastifyReply, FastifyRequest } from 'fastify'

/** The hold that a request asks for, at most `limitMs`. Sets Preference-Applied. */
export function negotiateHoldMs({ headers }: FastifyRequest, reply: FastifyReply, limitMs: number): number {
  const { holdMs: preferredMs, applied } = parsePrefer(headers.prefer)
  const holdMs = Math.min(preferredMs ?? limitMs, limitMs)
  if (applied !== undefined && holdMs === preferredMs) reply.header('preference-applied', applied)
  return holdMs
}

interface HoldPreference {
  /** The hold that the client asks for, in milliseconds; undefined when it does not say. */
  holdMs: number | undefined
  applied: string | undefined
}

/**
 * Parses `respond-async` and `wait=<seconds>`; ignores others, as the RFC requires. Both together
 * mean a ticket after that wait (RFC 7240, 4.3).
 */
export function parsePrefer(header: string | string[] | undefined): HoldPreference {
  const preferences = [header ?? []].flat().join(',').toLowerCase().split(',')
  const names = preferences.map((preference) => preference.split(';')[0]?.trim() ?? '')
  const async = names.filter((name) => name === 'respond-async').slice(0, 1)
  for (const name of names) {
    const seconds = /^wait\s*=\s*"?(\d{1,6})"?$/.exec(name)?.[1]
    if (seconds !== undefined) {
      return { holdMs: Number(seconds) * 1_000, applied: [...async, `wait=${seconds}`].join(', ') }
    }
  }
  return { holdMs: async.length > 0 ? 0 : undefined, applied: async[0] }
}
