/** Operations of the service API: those on passwords and stored hashes of an application that keeps its own users. */
import { completePolicy } from '@spillway/client/application/policy'
import type { HashPolicy } from '@spillway/client/protocol/policy'
import { isOf } from '@spillway/client/protocol/stored-hash'
import type { Access } from '../operations/access.js'
import { buildOperation, type Operation, type OperationDefinition } from '../operations/operation.js'
import { ApiError } from '../problems/errors.js'
import { problemResponse, unauthorizedProblem } from '../schemas/responses.js'
import type { PolicyField } from './schemas.js'

/** Services are authenticated and limited by their key. */
const byKey: Access<string> = {
  hooks: ({ requireServiceKey, limitService }) => ({ onRequest: [requireServiceKey, limitService], preHandler: [] }),
  security: [{ serviceKey: [] }],
  callerOf: ({ service = '' }) => service,
}

type Definition<Body, Contents extends object, Answer> = OperationDefinition<unknown, string, Body, Contents, Answer>
type Given = 'method' | 'tags' | 'access' | 'problems' | 'unsupportedHash'

export function defineServiceOperation<Body, Contents extends object, Answer>(
  definition: Omit<Definition<Body, Contents, Answer>, Given>,
): Operation<unknown> {
  return buildOperation({
    ...definition,
    method: 'POST',
    tags: ['Passwords'],
    access: byKey,
    problems: { 401: unauthorizedProblem, 422: problemResponse },
    unsupportedHash: () => new ApiError('unsupported_hash'),
  })
}

/** The policy of a request with its defaults filled in; undefined for that of the workers. */
export function policyOf(field: PolicyField | undefined): HashPolicy | undefined {
  try {
    return field && completePolicy(field)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new ApiError('invalid_request', { fields: [{ field: 'policy', message: error.message }] })
  }
}

/** Whether a worker made a hash as asked. One of an older version knows only its own policy. */
export function isAsAsked(hash: string, policy: HashPolicy | undefined): boolean {
  return policy === undefined || isOf(hash, policy)
}
