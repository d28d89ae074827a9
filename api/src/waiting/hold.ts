/** Holds a request until its job is answered; issues a ticket when that takes longer than the wait. */
import { once } from 'node:events'
import {
  type Expectation,
  type JobName,
  type JobRef,
  type Lane,
  type PasswordClient,
  PasswordClientError,
  type PendingJob,
  type Requests,
  type Verdict,
} from '@spillway/client/queue-client'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { FromSchema } from 'json-schema-to-ts'
import type { GatewayMetrics, WaitOutcome } from '../http/metrics.js'
import { ApiError } from '../problems/errors.js'
import type { TicketBody } from '../schemas/bodies.js'
import { type SessionClient, sessionClientOf } from '../sessions/session-client.js'
import type { Admission } from './admission.js'
import { parsePrefer } from './prefer.js'
import type { TicketContents, Tickets } from './tickets.js'
import type { UsedTickets } from './used-tickets.js'
import { preferredWaitMs, remainingWaitMs, ticketRetryAfterS } from './wait-times.js'

/** Adds the job of an operation to the lane to which its request was admitted. */
export type Submit = <Name extends JobName>(name: Name, request: Requests[Name]) => Promise<PendingJob>

/** A submitted job, with the data that finishing its operation needs besides the verdict. */
export interface Submitted<Contents> {
  contents: Contents
  pending: PendingJob
}

/** A job with its verdict, and the client that gets the answer. */
export interface AnsweredJob extends JobRef {
  verdict: Verdict
  client: SessionClient
}

/** The successful response of an operation. */
export interface Finished {
  status: number
  headers: Record<string, string>
  body: unknown
}
/** Finishes an operation whose job is answered; throws an {@link ApiError} unless it succeeds. */
export type Finish = (job: AnsweredJob) => Promise<Finished>

/** How the operation of a ticket ends: with its job's answer, or without one, because its time is over or the job is lost. */
export interface Resumed {
  finish: Finish
  unanswered(): void
}

/** An operation whose job was submitted. */
export interface Started extends Submitted<object> {
  kind: string
  finish: Finish
}

export type Ticketed = { status: 202; headers: Record<string, string>; body: FromSchema<typeof TicketBody> }

export interface Hold {
  /** Admits a request and starts its operation. Its job is cancelled when the client disconnects before the answer. */
  begin(
    request: FastifyRequest,
    reply: FastifyReply,
    start: (submit: Submit) => Promise<Started>,
  ): Promise<Finished | Ticketed>
  /**
   * Continues the operation of a ticket, which is used from just before the operation finishes. Throws `ticket_used`, `ticket_lost`, and
   * `ticket_expired` after the job's deadline.
   */
  redeem(request: FastifyRequest, reply: FastifyReply, ticket: string): Promise<Finished | Ticketed>
}

export function createHold(deps: {
  passwords: PasswordClient
  tickets: Tickets
  usedTickets: UsedTickets
  admission: Admission
  /** Returns how to end the operation of a ticket. Throws `invalid_ticket` for an operation that this API or its caller lacks. */
  resume(operation: TicketContents['operation'], request: FastifyRequest): Resumed
  metrics: GatewayMetrics
  waitLimitMs: number
  ticketTtlMs: number
}): Hold {
  const { passwords, tickets, usedTickets, admission, metrics, waitLimitMs, ticketTtlMs } = deps

  /** How long to hold a request, in milliseconds: as its client prefers, up to the limit. */
  function negotiateWaitMs(request: FastifyRequest, reply: FastifyReply): number {
    const { waitMs: preferredMs, applied } = parsePrefer(request.headers.prefer)
    const waitMs = preferredWaitMs(preferredMs, waitLimitMs)
    if (applied !== undefined && waitMs === preferredMs) reply.header('preference-applied', applied)
    return waitMs
  }

  /** Waits for the answer, and until it can be written. Undefined when the time runs out; throws when the client disconnects. */
  async function waitForAnswer(
    { kind, pending }: { kind: string; pending: PendingJob },
    waitMs: number,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Verdict | undefined> {
    const heldAt = performance.now()
    const { work } = request
    work?.pause()
    let outcome: WaitOutcome = 'failed'
    try {
      const answer = await pending.answer({ waitMs, signal: request.clientGone })
      await untilWritable(request, reply)
      outcome = answer === undefined ? 'ticket' : 'answered'
      return answer
    } catch (error) {
      if (isAbort(error)) outcome = 'client_gone'
      throw error
    } finally {
      work?.resume()
      metrics.wait.observe({ operation: kind, outcome }, (performance.now() - heldAt) / 1_000)
    }
  }

  function submitter(request: FastifyRequest, lane: Lane): Submit {
    return (name, contents) => {
      // A device may have turned out to be unknown meanwhile.
      const added = lane === 'known' && !isOfKnownDevice(request) ? 'held' : lane
      metrics.jobsAdded.inc({ lane: added })
      const submit = () => passwords.submit(name, contents, added)
      return request.inTrace?.(submit) ?? submit()
    }
  }

  /** @param holdMs how long the client prefers to be held */
  function ticketFor(ticket: TicketContents, expected: Expectation, holdMs: number, reply: FastifyReply): Ticketed {
    const { ahead: position, waitMs: predictedMs } = expected
    const ticketLeftMs = ticket.job.deadline - passwords.now(ticket.job)
    const retryAfter = ticketRetryAfterS({ predictedMs, holdMs, ticketLeftMs })
    reply.header('retry-after', retryAfter)
    const body: Ticketed['body'] = { ticket: tickets.issue(ticket), retryAfter }
    if (position !== undefined) body.position = position
    if (Number.isFinite(predictedMs)) body.eta = Math.round(predictedMs / 100) / 10
    return { status: 202, headers: {}, body }
  }

  return {
    async begin(request, reply, start) {
      const preferredMs = negotiateWaitMs(request, reply)
      const { lane, waitMs } = admission.admit(preferredMs, isOfKnownDevice(request))
      const started = await start(submitter(request, lane))
      const { kind, contents, pending, finish } = started
      const expiresAt = Date.now() + ticketTtlMs
      request.jobId = pending.job.id
      try {
        const answer = await waitForAnswer(started, remainingWaitMs(waitMs, reply.elapsedTime), request, reply)
        // With several Redis it may be another than at first.
        const { job } = pending
        request.jobId = job.id
        // Without a wait the client gets a ticket, even if the answer is there already.
        if (answer === undefined || waitMs === 0)
          return ticketFor(
            { operation: { ...contents, kind }, job, expiresAt },
            await pending.expectation(),
            preferredMs,
            reply,
          )
        return await finish({ ...job, verdict: answer, client: sessionClientOf(request) })
      } catch (error) {
        if (isAbort(error) && (await passwords.cancel(pending.job))) {
          metrics.cancelled.inc()
          // Nothing was hashed for the login.
          request.login?.takeBack()
        }
        throw error
      }
    },

    async redeem(request, reply, ticket) {
      const contents = tickets.read(ticket)
      const { operation, job } = contents
      const { finish, unanswered } = deps.resume(operation, request)
      const end = (code: 'ticket_expired' | 'ticket_lost') => {
        unanswered()
        return new ApiError(code)
      }
      if (passwords.now(job) >= job.deadline) throw end('ticket_expired')
      request.jobId = job.id
      if (await passwords.isLost(job)) throw end('ticket_lost')
      const leftMs = job.deadline - passwords.now(job)
      const preferredMs = negotiateWaitMs(request, reply)
      const waitMs = Math.min(preferredMs, leftMs)
      const pending = await passwords.resume(job)
      const answer = await waitForAnswer({ kind: operation.kind, pending }, waitMs, request, reply)
      if (answer === undefined) {
        // The clock is an estimate: it may be some milliseconds before the deadline after a wait until then.
        if (waitMs === leftMs || passwords.now(job) >= job.deadline) throw end('ticket_expired')
        return ticketFor(contents, await pending.expectation(), preferredMs, reply)
      }
      if (!(await usedTickets.use(job.id))) throw new ApiError('ticket_used')
      try {
        return await finish({ ...job, verdict: answer, client: sessionClientOf(request) })
      } catch (error) {
        // A 4xx answer uses the ticket up. After an internal failure it is good again.
        if (!(error instanceof ApiError) || error.status >= 500) await usedTickets.giveBack(job.id)
        throw error
      }
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
