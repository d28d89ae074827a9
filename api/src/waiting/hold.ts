/**
 * Holding a request: how long its client may wait, the job that it waits for, and the ticket where that takes longer. Plain functions,
 * which the conductor calls (operations/operation.ts).
 */
import { once } from 'node:events'
import {
  type JobName,
  type PasswordClient,
  PasswordClientError,
  type PendingJob,
  type Requests,
  type Verdict,
} from '@spillway/client/queue-client'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { FromSchema } from 'json-schema-to-ts'
import type { GatewayMetrics, WaitOutcome } from '../http/metrics.js'
import type { DeviceOf } from '../load-shedding/preference.js'
import { ApiError } from '../problems/errors.js'
import type { TicketBody } from '../schemas/bodies.js'
import type { Admission, Admitted } from './admission.js'
import type { TicketContents, Tickets } from './tickets.js'
import { createTicketPace, parsePrefer, preferredWaitMs, remainingWaitMs, ticketRetryAfterS } from './wait-times.js'

/** What a worker is asked. */
export interface JobRequest<Name extends JobName = JobName> {
  name: Name
  request: Requests[Name]
}

/** A request that was let in. */
export interface Place extends Admitted {
  /** How long its client wants to be held, in milliseconds, up to the limit. */
  preferredMs: number
  /** Its job is in the queue, or will not be. Called once. */
  settle(): void
}

/** A request that waits for a job. */
export interface Held {
  pending: PendingJob
  /** How long it waits, in milliseconds. */
  waitMs: number
  preferredMs: number
  /** When its ticket expires, in epoch milliseconds by this machine's clock. */
  expiresAt: number
  /** Whether the job was added by this request; otherwise by the request that got the ticket. */
  isFirst: boolean
  /** No verdict could be had, and the job was set aside: its client asks again later. */
  isSetAside?: true
}

/** The clock is an estimate: after a wait until the deadline it may be some milliseconds before it. */
const CLOCK_ERROR_MS = 100
/** When the next question about a password without a verdict is worth its while. Less than a ticket's client may stay away. */
const UNAVAILABLE_RETRY_S = 5
const RETRY_MAX_S = 60

/** The answer that gives a ticket. */
export type Ticketed = { status: 202; headers: Record<string, string>; body: FromSchema<typeof TicketBody> }

export type Hold = ReturnType<typeof createHold>

export function createHold(deps: {
  passwords: PasswordClient
  tickets: Tickets
  admission: Admission
  metrics: GatewayMetrics
  /** Names the line that a Redis server keeps. */
  lineNameOf(id: string): string
  /** The known device that a request shows a token of [no device is known]. */
  deviceOf?: DeviceOf | undefined
  /** Requests that this gateway answers in a second. */
  perSecond(): number
  waitLimitMs: number
  ticketTtlMs: number
}) {
  const { passwords, tickets, admission, metrics, lineNameOf, waitLimitMs, ticketTtlMs } = deps
  const { deviceOf = () => undefined, perSecond } = deps
  const ticketPaceMs = createTicketPace({ perSecond, waitLimitMs })

  /** How long to hold a request, in milliseconds: as its client prefers, up to the limit. */
  function negotiateWaitMs(request: FastifyRequest, reply: FastifyReply): number {
    const { waitMs: preferredMs, applied } = parsePrefer(request.headers.prefer)
    const waitMs = preferredWaitMs(preferredMs, waitLimitMs)
    if (applied !== undefined && waitMs === preferredMs) reply.header('preference-applied', applied)
    return waitMs
  }

  /** Nothing was hashed for a client that went away in time: its job is taken back, and its login does not count. */
  async function takeBack({ pending }: Held, request: FastifyRequest): Promise<void> {
    if (!(await passwords.cancel(pending.job))) return
    metrics.cancelled.inc()
    request.login?.takeBack()
  }

  /** A first request whose job ended by its deadline, or would have. Nobody gets `410` who never had a ticket. */
  function tooLate(): ApiError {
    const retryAfterS = Math.ceil(passwords.predictedWaitMs('held') / 1_000)
    return new ApiError('busy', {
      reason: 'predicted_wait',
      retryAfterS: Math.min(RETRY_MAX_S, Math.max(1, retryAfterS)),
    })
  }

  /**
   * A refusal that says nothing of the password. A first request is told when to come back, and its job is taken back. A ticket stays
   * pending: its job is set aside until its client comes again.
   */
  async function unanswered(held: Held, verdict: Verdict): Promise<Verdict | undefined> {
    if (verdict.kind !== 'refused') return verdict
    if (verdict.code === 'expired' && held.isFirst) throw tooLate()
    if (verdict.code !== 'unavailable') return verdict
    held.isSetAside = true
    if (!held.isFirst) return undefined
    await passwords.cancel(held.pending.job)
    throw new ApiError('unavailable', { reason: 'old_system', retryAfterS: UNAVAILABLE_RETRY_S })
  }

  return {
    /**
     * `onRequest` hook that refuses before anything is counted, read or asked, where the line is full. A request with a device token of
     * ours continues, because a known device has room of its own.
     */
    async refuseWhenFull({ headers }: FastifyRequest): Promise<void> {
      const refused = admission.refusalWhenFull()
      if (refused !== undefined && deviceOf(headers) === undefined) throw refused
    },

    /** Lets a request in by the predicted wait; its place is to be settled. Throws `busy` before any work is done. */
    admit(request: FastifyRequest, reply: FastifyReply): Place {
      const preferredMs = negotiateWaitMs(request, reply)
      const admitted = admission.admit(preferredMs, isOfKnownDevice(request))
      return { ...admitted, preferredMs, settle: admission.underway(admitted.lane) }
    },

    /** Adds the job of a request that was let in. Throws `queue_unavailable`. */
    async submit<Name extends JobName>(
      { lane, waitMs, preferredMs }: Place,
      { name, request: contents }: JobRequest<Name>,
      request: FastifyRequest,
      reply: FastifyReply,
    ): Promise<Held> {
      const isBehind = request.login?.isBehind === true
      // A device may have turned out to be unknown meanwhile.
      const own = lane === 'known' && !isOfKnownDevice(request) ? 'held' : lane
      const added = isBehind ? 'behind' : own
      const heldMs = isBehind || waitMs === 0 ? ticketPaceMs() : waitMs
      metrics.jobsAdded.inc({ lane: added })
      const submit = () => passwords.submit(name, contents, added, ticketTtlMs, heldMs)
      const pending = await (request.inTrace?.(submit) ?? submit())
      request.jobId = pending.job.id
      const expiresAt = Date.now() + ticketTtlMs
      const leftMs = remainingWaitMs(heldMs, reply.elapsedTime)
      return { pending, waitMs: leftMs, preferredMs, expiresAt, isFirst: true }
    },

    /**
     * Waits for the job of a ticket; where it may not be hashed yet, only for what is known of it. Throws `ticket_expired` after its
     * deadline, and `ticket_lost` where its Redis server is gone.
     */
    async resume(
      { job, expiresAt }: TicketContents,
      request: FastifyRequest,
      reply: FastifyReply,
      mayBeHashed: boolean,
    ): Promise<Held> {
      const leftMs = job.deadline - passwords.now(job)
      if (leftMs <= 0) throw new ApiError('ticket_expired')
      request.jobId = job.id
      const preferredMs = negotiateWaitMs(request, reply)
      const waitMs = mayBeHashed ? Math.min(preferredMs, leftMs) : 0
      const pending = await passwords.resume(job, waitMs, mayBeHashed)
      if (pending.isLost) {
        await pending.answer({ waitMs: 0 })
        throw new ApiError('ticket_lost')
      }
      return { pending, waitMs, preferredMs, expiresAt, isFirst: false }
    },

    /**
     * Waits for the verdict, and until an answer can be written. Undefined when the wait runs out first, and for a ticket whose job was
     * set aside. Throws when the client disconnects, whose first request takes its job back. Throws `busy` or `unavailable` for a first
     * request whose job ended without a verdict on the password.
     */
    async verdictOf(
      kind: string,
      held: Held,
      request: FastifyRequest,
      reply: FastifyReply,
    ): Promise<Verdict | undefined> {
      const heldAt = performance.now()
      const { work } = request
      work?.pause()
      let outcome: WaitOutcome = 'failed'
      try {
        const verdict = await held.pending.answer({ waitMs: held.waitMs, signal: request.clientGone })
        await untilWritable(request, reply)
        outcome = verdict === undefined ? 'ticket' : 'answered'
        // With several Redis servers the job may be another than at first.
        request.jobId = held.pending.job.id
        // Without a wait a first request gets a ticket, even if the verdict is there already.
        if (verdict === undefined || (held.isFirst && held.waitMs === 0)) return undefined
        return await unanswered(held, verdict)
      } catch (error) {
        if (isAbort(error)) {
          outcome = 'client_gone'
          if (held.isFirst) await takeBack(held, request)
          else await passwords.left(held.pending.job)
        }
        throw error
      } finally {
        work?.resume()
        metrics.wait.observe({ operation: kind, outcome }, (performance.now() - heldAt) / 1_000)
      }
    },

    /** The ticket of a request whose wait ran out. Throws `busy` or `ticket_expired` where the time of the job did, too. */
    async ticketFor(operation: TicketContents['operation'], held: Held, reply: FastifyReply): Promise<Ticketed> {
      const { pending, preferredMs, expiresAt, isFirst, isSetAside } = held
      const { job } = pending
      if (passwords.now(job) >= job.deadline - CLOCK_ERROR_MS)
        throw isFirst ? tooLate() : new ApiError('ticket_expired')
      const { ahead: position, waitMs: predictedMs, number } = await pending.expectation()
      const ticketLeftMs = job.deadline - passwords.now(job)
      const next = ticketRetryAfterS({ predictedMs, holdMs: preferredMs, ticketLeftMs })
      const retryAfter = isSetAside ? Math.max(next, UNAVAILABLE_RETRY_S) : next
      reply.header('retry-after', retryAfter)
      const body: Ticketed['body'] = {
        ticket: tickets.issue({ operation, job, expiresAt }),
        retryAfter,
        // A job that was never deferred is among the next.
        number: number ?? passwords.line(job).serving,
        line: lineNameOf(job.server ?? passwords.redis[0]?.id ?? ''),
      }
      if (position !== undefined) body.position = position
      if (passwords.line(job).paused) body.paused = true
      if (Number.isFinite(predictedMs)) body.eta = Math.round(predictedMs / 100) / 10
      return { status: 202, headers: {}, body }
    },
  }
}

/**
 * Resolves when an answer can be written: answers of earlier requests on the same connection come first (RFC 9112, 9.3.2). Nothing is
 * created from a verdict before that, because the client may still disconnect.
 */
async function untilWritable({ clientGone }: FastifyRequest, { raw }: FastifyReply): Promise<void> {
  if (raw.socket === null) await once(raw, 'socket', { signal: clientGone }).catch(() => undefined)
  if (clientGone.aborted) throw new PasswordClientError('wait_aborted', 'the client went away')
}

function isOfKnownDevice({ login }: FastifyRequest): boolean {
  return typeof login?.attempt.device === 'string'
}

function isAbort(error: unknown): boolean {
  return error instanceof PasswordClientError && error.code === 'wait_aborted'
}
