/** How long a request is held: until its verdict, its wait (RFC 7240) or its client has ended. */
import { once } from 'node:events'
import { type PasswordClient, PasswordClientError, type PendingJob, type Verdict } from '@spillway/queue/queue-client'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../plugins/errors.js'
import type { GatewayMetrics, WaitOutcome } from '../plugins/metrics.js'
import type { Operation } from './operation.js'

/** When to ask again about a password without a verdict, before its client counts as absent. */
export const UNAVAILABLE_RETRY_S = 5
const RETRY_MAX_S = 60

export interface Call<Deps> {
  operation: Operation<Deps>
  request: FastifyRequest
  reply: FastifyReply
}

export interface HeldCall<Deps> extends Call<Deps> {
  pending: PendingJob
  contents: object
  /** How long it waits, and how long its client would like to wait, in milliseconds. */
  waitMs: number
  preferredMs: number
  /** When its ticket expires, in epoch milliseconds by this machine's clock. */
  expiresAt: number
  /** Whether this request added the job; otherwise the request that got the ticket did. */
  isFirst: boolean
  /** Whether no verdict could be had, and the job was set aside: its client asks again later. */
  isSetAside?: true
}

/**
 * Waits for the verdict, and until an answer can be written. Undefined when the wait runs out
 * first, and for a ticket whose job was set aside. Throws when the client disconnects, whose first
 * request takes its job back, and for a first request whose job ended without a verdict on the
 * password.
 */
export async function waitForVerdict<Deps>(
  held: HeldCall<Deps>,
  { passwords, metrics }: { passwords: PasswordClient; metrics: GatewayMetrics },
): Promise<Verdict | undefined> {
  const { request, reply, pending, isFirst } = held
  const heldAt = performance.now()
  request.work?.pause()
  let outcome: WaitOutcome = 'failed'
  try {
    const verdict = await pending.answer({ waitMs: held.waitMs, signal: request.clientGone })
    await untilWritable(request, reply)
    outcome = verdict === undefined ? 'ticket' : 'answered'
    // With several Redis servers the job may be another than at first.
    request.jobId = pending.job.id
    // Without a wait a first request gets a ticket, even if the verdict is there already.
    if (verdict === undefined || (isFirst && held.waitMs === 0)) return undefined
    return await believed(held, verdict, passwords)
  } catch (error) {
    if (error instanceof PasswordClientError && error.code === 'wait_aborted') {
      outcome = 'client_gone'
      if (!isFirst) await passwords.left(pending.job)
      else if (await passwords.cancel(pending.job)) {
        // Nothing was hashed: the login does not count.
        metrics.cancelled.inc()
        request.login?.takeBack()
      }
    }
    throw error
  } finally {
    request.work?.resume()
    metrics.wait.observe({ operation: held.operation.kind, outcome }, (performance.now() - heldAt) / 1_000)
  }
}

/**
 * A verdict, unless it is a refusal that says nothing of the password. A first request is then told
 * when to come back, and its job is taken back. A ticket stays pending, and its job is set aside.
 */
async function believed<Deps>(
  held: HeldCall<Deps>,
  verdict: Verdict,
  passwords: PasswordClient,
): Promise<Verdict | undefined> {
  if (verdict.kind !== 'refused') return verdict
  if (verdict.code === 'expired' && held.isFirst) throw tooLate(passwords)
  if (verdict.code !== 'unavailable') return verdict
  held.isSetAside = true
  if (!held.isFirst) return undefined
  await passwords.cancel(held.pending.job)
  throw new ApiError('unavailable', { reason: 'old_system', retryAfterS: UNAVAILABLE_RETRY_S })
}

/** For a first request whose job ended by its deadline: only tickets are answered with `410`. */
export function tooLate(passwords: PasswordClient): ApiError {
  const waitS = Math.ceil(passwords.predictedWaitMs('held') / 1_000)
  return new ApiError('busy', { reason: 'predicted_wait', retryAfterS: Math.min(RETRY_MAX_S, Math.max(1, waitS)) })
}

/**
 * Resolves when an answer can be written: answers of earlier requests on the same connection come
 * first (RFC 9112, 9.3.2). Nothing is created from a verdict before that: the client may still
 * disconnect.
 */
async function untilWritable({ clientGone }: FastifyRequest, { raw }: FastifyReply): Promise<void> {
  if (raw.socket === null) await once(raw, 'socket', { signal: clientGone }).catch(() => undefined)
  if (clientGone.aborted) throw new PasswordClientError('wait_aborted', 'the client went away')
}

// How long, as its client prefers (RFC 7240).

/** The wait that a request asks for, within the limit. Sets Preference-Applied. */
export function negotiateWaitMs({ headers }: FastifyRequest, reply: FastifyReply, limitMs: number): number {
  const { waitMs: preferredMs, applied } = parsePrefer(headers.prefer)
  const waitMs = Math.min(preferredMs ?? limitMs, limitMs)
  if (applied !== undefined && waitMs === preferredMs) reply.header('preference-applied', applied)
  return waitMs
}

/**
 * The rest of a wait once the job is added, in milliseconds: reconnecting to Redis may have taken
 * two seconds. 0, a ticket at once, stays 0; other waits stay above 0.
 */
export function remainingWaitMs(waitMs: number, elapsedMs: number): number {
  return waitMs === 0 ? 0 : Math.max(1, waitMs - elapsedMs)
}

interface WaitPreference {
  /** The wait that the client asks for, in milliseconds; undefined when it does not say. */
  waitMs: number | undefined
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
