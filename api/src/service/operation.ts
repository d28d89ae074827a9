/** Operations of the service API: those on passwords and stored hashes of an application that keeps its own users. */
import { completePolicy } from '@spillway/client/application/options'
import { type HashPolicy, HashPolicySchema } from '@spillway/client/protocol/policy'
import { isOf } from '@spillway/client/protocol/stored-hash'
import type { Access } from '../operations/access.js'
import { buildOperation, type Job, type Operation } from '../operations/operation.js'
import { ApiError } from '../problems/errors.js'
import { problemResponse, unauthorizedProblem } from '../schemas/responses.js'
import { type Schema, schemaOf } from '../schemas/schema.js'
import type { JobRequest } from '../waiting/hold.js'
import type { PolicyField } from './passwords.js'

export interface ServiceOperationDefinition<Body extends { policy?: PolicyField }, Answer> {
  /** The name of the operation in tickets and metrics. */
  kind: string
  url: string
  operationId: string
  summary: string
  description?: string
  body: Schema<Body>
  /** The body of the successful response. */
  answer: Schema<Answer>
  /** What a worker is asked. Throws an {@link ApiError} to refuse the request. */
  job(body: Body, policy: HashPolicy | undefined): JobRequest
  /**
   * Returns the body of the answer; throws an {@link ApiError} otherwise. `isAsAsked` tells whether a new hash is of the request's policy.
   */
  finish(verdict: Job['verdict'], isAsAsked: (hash: string) => boolean): Answer
}

/** Services are authenticated and limited by their key. */
const byKey: Access<string> = {
  hooks: ({ requireServiceKey, limitService }) => ({ onRequest: [requireServiceKey, limitService], preHandler: [] }),
  security: [{ serviceKey: [] }],
  callerOf: ({ service = '' }) => service,
}

/** What tickets hold: the service, whose keys alone redeem it, and the policy of its request. */
const contents = schemaOf({
  type: 'object',
  properties: { service: { type: 'string' }, policy: HashPolicySchema },
  required: ['service'],
  additionalProperties: false,
})

export function defineServiceOperation<Body extends { policy?: PolicyField }, Answer>({
  answer,
  job,
  finish: answerTo,
  ...definition
}: ServiceOperationDefinition<Body, Answer>): Operation<unknown> {
  return buildOperation({
    ...definition,
    method: 'POST',
    tags: ['Passwords'],
    access: byKey,
    contents,
    answer: { status: 200, body: answer },
    problems: { 401: unauthorizedProblem, 422: problemResponse },
    unsupportedHash: () => new ApiError('unsupported_hash'),
    start(_deps, { body, caller: service }) {
      const policy = policyOf(body.policy)
      return { job: job(body, policy), contents: { service, ...(policy && { policy }) } }
    },
    async finish(_deps, { policy }, { verdict }) {
      return answerTo(verdict, (hash) => policy === undefined || isOf(hash, policy))
    },
  })
}

/** The policy of a request with its defaults filled in; undefined for the workers' policy. */
function policyOf(field: PolicyField | undefined): HashPolicy | undefined {
  try {
    return field && completePolicy(field)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new ApiError('invalid_request', { fields: [{ field: 'policy', message: error.message }] })
  }
}
