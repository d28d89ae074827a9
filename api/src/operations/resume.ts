/** How to finish an operation that its ticket names. */
import { ApiError } from '../problems/errors.js'
import type { Finish } from '../waiting/hold.js'
import type { TicketContents } from '../waiting/tickets.js'
import type { Operation, OperationDeps } from './operation.js'

/** Throws `invalid_ticket` for an operation that this gateway does not know: a gateway of another version sealed it. */
export function resumeAny(
  operations: readonly Operation[],
  deps: OperationDeps,
): (operation: TicketContents['operation']) => Finish {
  const byKind = new Map(operations.map((operation) => [operation.kind, operation]))
  return ({ kind, ...contents }) => {
    const finish = byKind.get(kind)?.resume(deps, contents)
    if (finish === undefined) throw new ApiError('invalid_ticket')
    return finish
  }
}
