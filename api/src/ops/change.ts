/** What all changes by operators share: a reason, and an event in the audit. */
import type { FastifyPluginAsyncJsonSchemaToTs } from '@fastify/type-provider-json-schema-to-ts'
import type { Database } from '@spillway/prisma'
import { objectOf } from '@spillway/queue/wire/object-schema'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Audit } from '../audit/recorder.js'
import type { AuditEventName } from '../audit/store.js'
import type { GatewayConfig } from '../config.js'
import { bodyProblems, problemResponse } from '../schemas/responses.js'
import { UUID } from '../sessions/access-tokens.js'
import type { Opened } from '../start.js'
import type { OperatorReads } from './reads.js'

export interface OperatorDeps extends Opened {
  config: GatewayConfig
  /** Only operators use its connections, so logins never wait for them. */
  database: Database
  reads: OperatorReads
}

/** A plugin with routes for operators. Types of requests and responses come from their JSON schemas. */
export type OperatorRoutes = FastifyPluginAsyncJsonSchemaToTs<{ Options: OperatorDeps }>

export const Reason = {
  type: 'string',
  minLength: 1,
  maxLength: 256,
  pattern: '\\S',
  format: 'plain-text',
  description: 'The reason. The audit keeps it after the account is deleted, so it must not contain names',
} as const

export const changeResponses = {
  200: {
    title: 'Changed',
    ...objectOf({ changed: { type: 'integer', description: 'How many things changed; 0 if nothing had to change' } }),
  },
  404: problemResponse,
  ...bodyProblems,
} as const

interface Recorded {
  event: AuditEventName
  userId?: string
  reason: string
  /** How many things changed [one]. */
  changed?: number
  /** The network that is blocked [the operator's]. */
  ip?: string
}

export function recordChange(audit: Audit, request: FastifyRequest, recorded: Recorded): void {
  const { ip = request.ip, changed = 1, ...event } = recorded
  const outcome = changed > 0 ? 'ok' : 'unchanged'
  audit.record({ ...event, outcome, ip, requestId: request.id, operator: request.operator.name })
}

/** Records each refused request for a change, by the `event` in the config of its route. */
export function recordRefusals(app: FastifyInstance, audit: Audit): void {
  app.addHook('onResponse', async ({ routeOptions, errorCode, operator, params, ip, id: requestId }) => {
    const { event } = routeOptions.config
    if (event === undefined || errorCode === undefined || operator === undefined) return
    const { id } = Object(params)
    const userId = UUID.test(id) ? String(id) : null
    audit.record({ event, outcome: errorCode, userId, ip, requestId, operator: operator.name })
  })
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The event of a change: of an operator, or of a user if its outcome may be unknown. */
    event?: AuditEventName
  }
}
