/** Operations of the public API: those on accounts. */
import type { Database } from '@spillway/prisma'
import { ApiError } from '../problems/errors.js'
import type { IssueTokens } from '../sessions/access-token.js'
import type { Sessions } from '../sessions/sessions.js'
import type { HashUpgrades } from './hash-upgrades.js'
import type { CheckNewPassword } from './new-password.js'
import { buildOperation, type Operation, type OperationDefinition } from './operation.js'

export interface OperationDeps {
  database: Database
  sessions: Sessions
  issueTokens: IssueTokens
  checkPassword: CheckNewPassword
  upgrades: HashUpgrades
}

/**
 * Defines an operation. An unsupported stored hash is answered like a wrong password, so that it does not reveal the account; metrics
 * and logs tell operators.
 */
export function defineOperation<Caller, Body, Contents extends object, Answer>(
  definition: Omit<OperationDefinition<OperationDeps, Caller, Body, Contents, Answer>, 'unsupportedHash'>,
): Operation<OperationDeps> {
  const unsupportedHash = () => new ApiError('invalid_credentials', { reason: 'unsupported_hash' })
  return buildOperation({ ...definition, unsupportedHash })
}
