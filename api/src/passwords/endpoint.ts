/**
 * An endpoint that needs a password job: its route, the job that it needs (`start`), and the answer
 * to the result (`finish`). flow.ts calls both.
 */
import type { Logger } from '@spillway/common/log'
import type { JobRef, Requests, Result } from '@spillway/queue/client'
import { checkFor } from '@spillway/queue/wire/schema'
import type { FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify'
import type { FromSchema, JSONSchema } from 'json-schema-to-ts'
import type { Audit } from '../audit/recorder.js'
import type { AuditEvent, AuditEventName } from '../audit/store.js'
import type { ApiError } from '../http/problems.js'
import { bodyProblems, limitProblem, ticketResponse } from '../schemas/responses.js'
import type { SessionClient } from '../sessions/sessions.js'
import type { Headers } from '../sessions/token-carrier.js'

export interface EndpointRoute<Deps, Body, Answer> {
  /** The name of the endpoint in tickets, metrics and the audit. */
  kind: string
  method: 'POST' | 'PUT'
  url: string
  operationId: string
  tags: readonly string[]
  summary: string
  description?: string
  /** The security requirement in OpenAPI [anyone may call it]. */
  security?: readonly { readonly [scheme: string]: readonly string[] }[]
  /** Hooks that authenticate a request [none]. */
  onRequest?(deps: Deps): onRequestAsyncHookHandler[]
  headers?: Record<string, object>
  body: Schema<Body>
  /** The field with the password to hash, for errors [password]. */
  newPasswordField?: string
  /** The error if no worker supports the stored hash [the error of a wrong password, which hides the account]. */
  unsupportedHash?(): ApiError
  success: { status: number; body: Schema<Answer> }
  /** Responses besides the ones that all endpoints have: 202, 400, 413, 415, 422, 429, 500 and 503. */
  problems: Record<number, object>
}

export interface StartInput<Body, Remembered> {
  body: Body
  /** The request that starts the job: the first one, or a redemption of its ticket. */
  request: FastifyRequest
  reply: FastifyReply
  /** What `start` remembered, if a ticket starts the request again. */
  earlier: Remembered | undefined
}

export type WantedJob = { name: 'hash'; request: Requests['hash'] } | { name: 'verify'; request: Requests['verify'] }

export interface Started<Remembered> {
  /** What `finish` needs besides the result. It is sealed into the ticket. */
  remembered: Remembered
  /** Undefined if the job may not be started yet. The ticket of the request starts it later. */
  job: WantedJob | undefined
  /** Whether the request is from a device that is known to its account [false]. */
  isKnownDevice?: boolean
}

/** The client of a request, and the ids of its job. */
export interface Origin {
  /** The id of the first job, also of later attempts. New accounts and sessions take it. */
  id: string
  client: SessionClient
  /** The id of the request that got the ticket, or of this request. */
  requestId: string
}

export interface FinishedJob extends Origin {
  job: JobRef
  result: Exclude<Result, { kind: 'refused' }>
  /** Whether an earlier call may have done it: the answer of the database was lost. */
  mayBeDone: boolean
}

/**
 * How a request ended. `refused`: by its endpoint, after a result. `unanswered`: nobody learned the
 * result, because there was no result, or because the ticket had been used or had expired. `unknown`:
 * the answer of the database was lost; the ticket of the request finds out, and ends it once more.
 */
export interface Ending extends Origin {
  kind: 'succeeded' | 'refused' | 'unanswered' | 'unknown'
  /** Why it was refused, or how its ticket ended. */
  error: ApiError | undefined
}

export interface Endpoint<Deps, Body = unknown, Remembered extends object = object, Answer = unknown> {
  readonly route: EndpointRoute<Deps, Body, Answer>
  readonly remembered: Schema<Remembered>
  /** Checks all that needs no hash, and returns the job. Throws an {@link ApiError} to refuse. */
  start(deps: Deps, input: StartInput<Body, Remembered>): Promise<Started<Remembered>>
  /**
   * Resolves with the answer. Throws an {@link ApiError} to refuse. It is called again if the answer of
   * the database was lost, and then finds out what it has done.
   */
  finish(deps: Deps, remembered: Remembered, job: FinishedJob): Promise<{ headers?: Headers; body: Answer }>
  /** Called once at the end of each request that was started; before that also for an `unknown` outcome. */
  ended?(deps: Deps, remembered: NoInfer<Remembered>, ending: Ending): void
}

/** The account of an event, and the counts of a login. */
export interface AuditSubject {
  userId?: string | null
  sessionId?: string
  isKnownDevice?: boolean
  failures?: number
}

/** Records how a request ended: with an answer, or with the end of its ticket. */
export function recordEnding(
  { audit, log }: { audit: Pick<Audit, 'record'>; log: Pick<Logger, 'error'> },
  event: AuditEventName,
  ending: Ending,
  subject: AuditSubject,
): void {
  const { kind, error, client, requestId } = ending
  if (kind === 'unanswered' && error === undefined) return
  const outcome: AuditEvent['outcome'] = error === undefined ? 'ok' : (error.reason ?? error.code)
  audit.record({ event, outcome, ip: client.ip, requestId, ...subject })
  if (outcome === 'unsupported_hash')
    log.error({ userId: subject.userId, requestId }, 'no worker verifies the stored hash of this account')
}

/** Converts an endpoint to a member of a list of endpoints. */
export function defineEndpoint<Deps, Body, Remembered extends object, Answer>(
  endpoint: Endpoint<Deps, Body, Remembered, Answer>,
): Endpoint<Deps> {
  return endpoint
}

/** The schema of a route's headers. Any text is valid: unknown preferences are ignored. */
export const PreferHeader = {
  type: 'object',
  properties: {
    Prefer: {
      type: 'string',
      description: '`wait=<seconds>` sets the longest hold; `respond-async` returns a ticket at once (RFC 7240)',
    },
  },
} as const

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

/** The options of an endpoint's route, without a handler. */
export function routeOf<Deps>({ route }: Endpoint<Deps>, deps: Deps) {
  const { method, url, operationId, tags, summary, description, security, success, problems } = route
  return {
    method,
    url,
    schema: {
      operationId,
      tags,
      summary,
      ...(description === undefined ? {} : { description }),
      ...(security === undefined ? {} : { security }),
      headers: { ...PreferHeader, properties: { ...PreferHeader.properties, ...route.headers } },
      body: route.body.json,
      response: {
        [success.status]: success.body.json,
        202: ticketResponse,
        ...problems,
        429: limitProblem,
        ...bodyProblems,
      },
    },
    onRequest: route.onRequest?.(deps) ?? [],
  }
}

// JSON schemas with the types of their values.

/** The keywords of a JSON schema that this code reads. */
export interface JsonObject {
  readonly type?: unknown
  readonly description?: string
  readonly anyOf?: readonly object[]
  readonly examples?: readonly unknown[]
}

export interface Schema<T> {
  json: JsonObject
  /** Whether a value matches. Formats are not checked: the route has checked them. */
  is(value: unknown): value is T
}

type TypeOf<Json> = Json extends JSONSchema ? FromSchema<Json> : never

export function schemaOf<const Json extends JsonObject>(json: Json): Schema<TypeOf<Json>> {
  return { json, is: checkFor<TypeOf<Json>>(json) }
}
