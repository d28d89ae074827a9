/** The list of operations. Routes, tickets, metrics labels and OpenAPI follow from it. */
import { ApiError } from '../problems/errors.js'
import type { Finish } from '../waiting/hold.js'
import type { TicketContents } from '../waiting/tickets.js'
import { changePassword } from './change-password.js'
import { login } from './login.js'
import type { Operation, OperationDeps } from './operation.js'
import { register } from './register.js'
import { verifyPassword } from './verify-password.js'

export const operations: readonly Operation[] = [register, login, changePassword, verifyPassword]

/** How to finish the operation of a ticket. Throws `invalid_ticket` for an operation of another version that this gateway lacks. */
export function resumeOperation(deps: OperationDeps, { kind, ...contents }: TicketContents['operation']): Finish {
  const finish = operations.find((operation) => operation.kind === kind)?.resume(deps, contents)
  if (finish === undefined) throw new ApiError('invalid_ticket')
  return finish
}
