/** The dependencies of routes, and the type of a route plugin: request and response types come from the JSON schemas. */
import type { FastifyPluginAsyncJsonSchemaToTs } from '@fastify/type-provider-json-schema-to-ts'
import type { PasswordClient } from '@spillway/client/queue-client'
import type { Database } from '@spillway/prisma'
import type { Audit } from '../audit/events.js'
import type { Post } from '../mail/post.js'
import type { IssueTokens } from '../sessions/access-token.js'
import type { Sessions } from '../sessions/sessions.js'
import type { PublicJwk } from '../sessions/signing-keys.js'
import type { Hold } from '../waiting/hold.js'

export interface RouteDeps {
  database: Database
  passwords: PasswordClient
  isDraining(): boolean
  hold: Hold
  sessions: Sessions
  issueTokens: IssueTokens
  audit: Audit
  /** Undefined where no mail is sent. */
  post: Post | undefined
  jwks: { keys: PublicJwk[] }
}

export type RoutePlugin = FastifyPluginAsyncJsonSchemaToTs<{ Options: RouteDeps }>
