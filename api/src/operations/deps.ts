/** What operations and routes of the public API are made of. */
import type { FastifyPluginAsyncJsonSchemaToTs } from '@fastify/type-provider-json-schema-to-ts'
import type { Logger } from '@spillway/common/log'
import type { Database } from '@spillway/prisma'
import type { PasswordClient } from '@spillway/queue/queue-client'
import type { Audit } from '../audit/recorder.js'
import type { Post } from '../mail/post.js'
import type { Guessing } from '../plugins/guessing/guessing.js'
import type { OptionalClaim, TokenIssuer } from '../sessions/access-token.js'
import type { SessionOpener } from '../sessions/session-opening.js'
import type { Sessions } from '../sessions/sessions.js'
import type { SigningKeys } from '../sessions/signing-keys.js'
import type { TokenCarrier } from '../sessions/token-carrier.js'
import type { Credentials } from './credentials.js'
import type { HashUpgrades } from './hash-upgrades.js'
import type { NewPasswords } from './new-password.js'

export interface Deps {
  database: Database
  passwords: PasswordClient
  keys: SigningKeys
  issuer: string
  tokenClaims: readonly OptionalClaim[]
  log: Pick<Logger, 'info'>
  audit: Audit
  /** Undefined where no mail is sent. */
  post: Post | undefined
  /** Whether the gateway was told to stop. */
  isDraining(): boolean
  sessions: Sessions
  sessionOpener: SessionOpener
  tokenIssuer: TokenIssuer
  newPasswords: NewPasswords
  upgrades: HashUpgrades
  guessing: Guessing
  tokenCarrier: TokenCarrier
  credentials: Credentials
  /** Whether the old system is asked about accounts that are not here, or came without a hash. */
  asksOldSystem: boolean
}

/** A plugin with routes, whose types of requests and responses come from their JSON schemas. */
export type RoutePlugin = FastifyPluginAsyncJsonSchemaToTs<{ Options: Deps }>
