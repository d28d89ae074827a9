/** What routes are given, and what they are: plugins whose types come from their JSON schemas. */
import type { FastifyPluginAsyncJsonSchemaToTs } from '@fastify/type-provider-json-schema-to-ts'
import type { Database } from '@spillway/prisma'
import type { PasswordClient } from '@spillway/worker/client'
import type { Hold } from '../hold.js'
import type { Sessions } from '../sessions.js'
import type { PublicJwk } from '../signing-keys.js'
import type { IssueTokens } from '../tokens.js'

export interface RouteDeps {
  database: Database
  passwords: PasswordClient
  isDraining(): boolean
  hold: Hold
  sessions: Sessions
  issueTokens: IssueTokens
  jwks: { keys: PublicJwk[] }
}

export type RoutePlugin = FastifyPluginAsyncJsonSchemaToTs<{ Options: RouteDeps }>
