/** The service API of a gateway: hashing for applications in any language that keep their own users. On a listener of its own. */
import type { Keyring, PasswordClient } from '@spillway/client/queue-client'
import type { Database } from '@spillway/prisma'
import type { FastifyInstance } from 'fastify'
import type { GatewayConfig } from '../config.js'
import type { DocsOptions } from '../http/docs.js'
import { createLimits, type LimitRequest } from '../limits/limit.js'
import type { CountingRedis } from '../limits/shared-counts.js'
import { Conductor } from '../operations/conductor.js'
import type { Operation } from '../operations/operation.js'
import { lineRoutes, ticketRoutes } from '../routes/tickets.js'
import { buildServer, type ServerDeps } from '../server.js'
import { type AccessTokenOptions, accessTokenPlugin } from '../sessions/access-token.js'
import type { Sessions } from '../sessions/sessions.js'
import type { Admission } from '../waiting/admission.js'
import { LineDocument } from '../waiting/line-document.js'
import { introspectionRoute } from './introspect.js'
import { serviceKeysPlugin } from './keys.js'
import { hash, verify } from './passwords.js'

export const serviceOperations: readonly Operation<unknown>[] = [verify, hash]

/** The largest password and stored hash, escaped. */
const BODY_LIMIT_BYTES = 32 * 1_024

export interface ServiceAppDeps extends ServerDeps {
  /** For used tickets and introspection alone: calls that are answered while they are held need no database. */
  database: Database
  accessTokens: AccessTokenOptions
  sessions: Sessions
  passwords: PasswordClient
  countingRedis: readonly CountingRedis[]
  admission: Admission
  keyring: Keyring
}

const docs: DocsOptions = {
  title: 'Spillway service',
  description:
    'Verifies and hashes passwords for applications that keep their own users, and tells other services whether access tokens are good. A request whose hash takes longer than it is held is ' +
    'answered with 202 and a ticket; errors are RFC 9457 problems with a stable code.',
  tags: [
    { name: 'Passwords', description: 'Verifying and hashing' },
    { name: 'Tokens', description: 'Whether an access token of a user is good' },
    { name: 'Tickets', description: 'Answers that came later' },
  ],
  securitySchemes: {
    serviceKey: { type: 'http', scheme: 'bearer', description: 'A key of SERVICE_KEYS, without its name' },
  },
}

/** Builds the service application. Dependencies stay the caller's to close. */
export async function buildServiceApp(config: GatewayConfig, deps: ServiceAppDeps): Promise<FastifyInstance> {
  const { database, passwords, countingRedis, admission, keyring, metrics, log } = deps
  const app = await buildServer(config, deps, { bodyLimitBytes: BODY_LIMIT_BYTES, docs })
  await app.register(serviceKeysPlugin, { keys: config.SERVICE_KEYS })
  const limit = createLimits(countingRedis, config.QUEUE_PREFIX)
  const limitOf = (kind: string) =>
    limit({
      max: config.LIMIT_PER_SERVICE,
      reason: 'service_limit',
      nameOf: ({ service }) => `${kind}:${service}`,
      headers: 'always',
    })
  app.decorate('limitService', limitOf('service'))
  await app.register(accessTokenPlugin, deps.accessTokens)
  await app.register(introspectionRoute, {
    verify: app.verifyAccessToken,
    sessions: deps.sessions,
    onRequest: [app.requireServiceKey, app.limitService],
  })
  const line = new LineDocument(passwords, keyring)
  const conductor = new Conductor({
    ...{
      deps: undefined,
      operations: serviceOperations,
      passwords,
      database,
      keyring,
      admission,
      metrics,
      log,
      config,
    },
    ...{ line, perSecond: deps.shedder.perSecond },
    // Counted by themselves: new requests must not use up what their answers are fetched with.
    limitRedemption: limitOf('service-redeem'),
    // A ticket is its service's own.
    isOwn: (contents, { service }) => service !== undefined && 'service' in contents && contents.service === service,
  })
  conductor.mount(app)
  const byKey = { onRequest: app.requireServiceKey, security: [{ serviceKey: [] }] }
  await app.register(lineRoutes, { line, ...byKey })
  await app.register(ticketRoutes, { conductor, ...byKey })
  return app
}

declare module 'fastify' {
  interface FastifyInstance {
    /** `onRequest` hook that counts a request against the limit of its service. */
    limitService: LimitRequest
  }
}
