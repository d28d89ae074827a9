/** The wire, part one: jobs. Their names, data and sealed contents, shared by client and worker. */
import type { FromSchema } from 'json-schema-to-ts'
import { objectOf } from './object-schema.js'
import { HashPolicySchema } from './policy.js'
import { checkFor } from './schema.js'
import { ExactHashSchema } from './setting.js'
import { rehashModes } from './stored-hash.js'

/** The queue of password jobs. The autoscaler counts it: `wait`, `prioritized` and `active`. */
export const QUEUE_NAME = 'passwords'

/** The braces are a Redis Cluster hash tag: BullMQ's scripts need all keys in a slot. */
export const DEFAULT_QUEUE_PREFIX = '{spillway}'

export const jobNames = ['hash', 'verify'] as const
export type JobName = (typeof jobNames)[number]

/** BullMQ's priority of ticketed jobs. Open jobs have no priority, and go first: see order.ts. */
export const TICKETED_PRIORITY = 1

/** The maximum length of a sealed request, in characters: workers refuse longer ones. */
export const SEALED_MAX_LENGTH = 32_768

export const REQUEST_ID = '^[\\w.-]{1,64}$'

/**
 * The data of a job in Redis, readable by anyone who can read Redis. Times are epoch milliseconds
 * by Redis's clock. The seal authenticates only `deadline`: other forged fields cause at worst a
 * wrong metric or log line, a missed message or a further attempt.
 */
const JobData = objectOf(
  {
    deadline: { type: 'integer' },
    enqueuedAt: { type: 'integer' },
    /** The time until which the client of the first request is present. */
    presentUntil: { type: 'integer' },
    replyTo: { type: 'string', maxLength: 64 },
    sealed: { type: 'string', maxLength: SEALED_MAX_LENGTH },
  },
  {
    /** The latest time of the answer to the first request, if its client is present for longer. */
    heldUntil: { type: 'integer' },
    /** The id of the request that added the job. */
    requestId: { type: 'string', pattern: REQUEST_ID },
  },
)
export type JobData = FromSchema<typeof JobData>
export const isJobData = /* @__PURE__ */ checkFor<JobData>(JobData)

/**
 * The result that BullMQ keeps for operators. It does not say whether a password was right, but
 * times reveal that if a match is followed by a second hash.
 */
const JobResult = objectOf({
  /** `skipped`: unhashed, because its client was not there. */
  outcome: { enum: ['answered', 'skipped'] },
  queueWaitMs: { type: 'number' },
  serviceMs: { type: 'number' },
})
export type JobResult = FromSchema<typeof JobResult>
export const isJobResult = /* @__PURE__ */ checkFor<JobResult>(JobResult)

/**
 * The sealed contents of a `hash` job [by the worker's policy]. With `exact` the hash is made only
 * from what `exact` contains. The sender checks the result (isOf in stored-hash.ts; the setting).
 */
const HashRequest = objectOf({ password: { type: 'string' } }, { policy: HashPolicySchema, exact: ExactHashSchema })
export type HashRequest = FromSchema<typeof HashRequest>
export const isHashRequest = /* @__PURE__ */ checkFor<HashRequest>(HashRequest)

/**
 * The sealed contents of a `verify` job. `storedHash: null` requests a dummy hash: a verify at the cost
 * of the policy that never matches, so that an unknown user takes as long as a known one.
 *
 * Without a next password a match may get a new hash. With `upgrade` that delays nothing: the
 * result says whether a new hash follows, in a reply of its own (upgradeOf in reply.ts). Without
 * `upgrade`, the result carries the new hash. If the request has a policy, only a weaker hash is
 * replaced. Otherwise the policy of the worker decides. `rehash: false` turns this off.
 */
const VerifyRequest = objectOf(
  { password: { type: 'string' }, storedHash: { type: ['string', 'null'] } },
  {
    /** The password as typed, if its normal form is another text: old systems hashed it so. */
    typed: { type: 'string' },
    /**
     * The owner of the stored hash: `accounts` of a gateway, `service:` with a name, or absent for
     * an application. Workers use peppers and other secrets only for owners that operators name.
     */
    owner: { type: 'string' },
    /** Hashed when the password matches. */
    nextPassword: { type: 'string' },
    policy: HashPolicySchema,
    rehash: { type: 'boolean' },
    upgrade: { enum: rehashModes },
  },
)
export type VerifyRequest = FromSchema<typeof VerifyRequest>
export const isVerifyRequest = /* @__PURE__ */ checkFor<VerifyRequest>(VerifyRequest)

/** The owner of the stored hashes of a gateway's own accounts. */
export const ACCOUNTS = 'accounts'

export const ownerOfService = (name: string): string => `service:${name}`

/**
 * The size of a verify request without its passwords, in bytes of JSON. Hashes of up to 193
 * characters fit, the length of the longest PHC string. Longer hashes take a multiple of this size.
 */
const BESIDES_PASSWORDS_BYTES = 256

/**
 * Pads verify requests to one size for any stored hash: otherwise the size of the sealed request
 * (in blocks) would reveal whether there is one. Workers ignore the padding.
 */
export function padRequest(request: Requests[JobName]): object {
  if (!('storedHash' in request)) return request
  const { nextPassword: _, typed: __, ...contents } = request
  const besides = Buffer.byteLength(JSON.stringify({ ...contents, password: '', padding: '' }))
  const missing = Math.ceil(besides / BESIDES_PASSWORDS_BYTES) * BESIDES_PASSWORDS_BYTES - besides
  return { ...request, padding: ' '.repeat(missing) }
}

/** The sealed contents by job name. */
export interface Requests {
  hash: HashRequest
  verify: VerifyRequest
}

/**
 * The result of a job, sealed in Redis. After a match `hash` is a new hash to store: of
 * `nextPassword` if there was one, otherwise of the password if a new hash was due. Only requests
 * with `upgrade` get `hashFollows`.
 */
const Result = {
  type: 'object',
  discriminator: { propertyName: 'kind' },
  required: ['kind'],
  oneOf: [
    objectOf({ kind: { const: 'hashed' }, hash: { type: 'string' } }),
    objectOf({ kind: { const: 'match' } }, { hash: { type: 'string' }, hashFollows: { const: true } }),
    objectOf({ kind: { const: 'mismatch' } }),
    objectOf({
      kind: { const: 'refused' },
      code: { enum: ['unsupported_hash', 'unsupported_password', 'hashing_failed'] },
    }),
  ],
} as const
export type Result = FromSchema<{ oneOf: (typeof Result)['oneOf'] }>
export const isResult = /* @__PURE__ */ checkFor<Result>(Result)

/**
 * Why a worker refused a job: an unsupported stored hash, a new password that bcrypt would
 * truncate, or an error of the hashing code.
 */
export type RefusalCode = Extract<Result, { kind: 'refused' }>['code']
