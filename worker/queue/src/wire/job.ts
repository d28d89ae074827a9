/** The wire, part one: jobs. Their names, data and sealed contents, shared by client and worker. */
import type { FromSchema } from 'json-schema-to-ts'
import { objectOf } from './object-schema.js'
import { type HashPolicy, HashPolicySchema } from './policy.js'
import { checkFor } from './schema.js'
import { type ExactHash, ExactHashSchema } from './setting.js'
import { type RehashMode, rehashModes } from './stored-hash.js'

/** The queue of password jobs. The autoscaler counts it: `wait`, `prioritized` and `active`. */
export const QUEUE_NAME = 'passwords'

/** The braces are a Redis Cluster hash tag: BullMQ's scripts need all keys in a slot. */
export const DEFAULT_QUEUE_PREFIX = '{spillway}'

export const jobNames = ['hash', 'verify'] as const
export type JobName = (typeof jobNames)[number]

/**
 * The lanes: `held` jobs run before `deferred` ones, which age, and `known` ones, from devices that
 * have logged in before, overtake held ones (see lanes.ts). A job that is `behind` follows all
 * deferred ones, and is hashed only while its client is there. For BullMQ, `known` and `held` jobs
 * are one list; the others have a priority, and run after it. The autoscaler counts all.
 */
export const lanes = ['known', 'held', 'deferred', 'behind'] as const
export type Lane = (typeof lanes)[number]
export const DEFERRED_PRIORITY = 1
export const BEHIND_PRIORITY = 2

/** The maximum length of a sealed request, in characters: workers refuse longer ones. */
export const SEALED_MAX_LENGTH = 32_768

export const REQUEST_ID = '^[\\w.-]{1,64}$'

/**
 * The data of a job in Redis, readable by anyone who can read Redis. Times are epoch milliseconds
 * by Redis's clock. The seal authenticates `deadline` alone: forging the others causes at worst a
 * wrong metric or log line, a missed message or a further attempt.
 */
const JobData = objectOf(
  {
    deadline: { type: 'integer' },
    enqueuedAt: { type: 'integer' },
    replyTo: { type: 'string', maxLength: 64 },
    sealed: { type: 'string', maxLength: SEALED_MAX_LENGTH },
  },
  {
    /** Of the request that had it added. */
    requestId: { type: 'string', pattern: REQUEST_ID },
    /** The worker that could not open it. */
    unopenedBy: { type: 'string', maxLength: 64 },
  },
)
export type JobData = FromSchema<typeof JobData>
export const isJobData = /* @__PURE__ */ checkFor<JobData>(JobData)

/**
 * The result of a job that BullMQ keeps for operators, without whether a password was right. Times
 * reveal that where a match is followed by a second hash.
 */
const JobResult = objectOf({
  outcome: { enum: ['answered', 'expired'] },
  queueWaitMs: { type: 'number' },
  serviceMs: { type: 'number' },
})
export type JobResult = FromSchema<typeof JobResult>
export const isJobResult = /* @__PURE__ */ checkFor<JobResult>(JobResult)

/**
 * The sealed contents of a `hash` job [by the worker's policy]. With `exact` the hash is made of
 * what that holds alone. The sender checks what comes back (isOf in stored-hash.ts; the setting).
 */
const HashRequest = objectOf({ password: { type: 'string' } }, { policy: HashPolicySchema, exact: ExactHashSchema })
export interface HashRequest {
  password: string
  policy?: HashPolicy
  exact?: ExactHash
}
export const isHashRequest = /* @__PURE__ */ checkFor<HashRequest>(HashRequest)

/**
 * The sealed contents of a `verify` job. `storedHash: null` requests a decoy: a verify at the cost
 * of the policy that never matches, so that an unknown user takes as long as a known one.
 *
 * Without a next password a match may be hashed anew. With `upgrade` that delays nothing: the
 * verdict says whether a new hash follows, in a reply of its own (upgradeOf in reply.ts). Else the
 * new hash comes with the verdict, unless `rehash` is false: of a stored hash below the policy of
 * the request, or by the policy of the worker, which includes when.
 */
const VerifyRequest = objectOf(
  { password: { type: 'string' }, storedHash: { type: ['string', 'null'] } },
  {
    /** As typed, where a normal form made another text of it: old systems hashed that. */
    typed: { type: 'string' },
    /**
     * Whose stored hash it is: `accounts` of a gateway, `service:` with its name, or nobody's, an
     * application's own. Workers use peppers and other secrets for owners that the operator named.
     */
    owner: { type: 'string' },
    /** Asked beside the decoy if `ask`: a yes is a match with a new hash. */
    oldSystem: objectOf({ email: { type: 'string' }, ask: { type: 'boolean' } }),
    /** Hashed when the password matches. */
    nextPassword: { type: 'string' },
    policy: HashPolicySchema,
    rehash: { type: 'boolean' },
    upgrade: { enum: rehashModes },
  },
)
export interface VerifyRequest {
  password: string
  typed?: string
  storedHash: string | null
  owner?: string
  oldSystem?: { email: string; ask: boolean }
  nextPassword?: string
  policy?: HashPolicy
  rehash?: boolean
  upgrade?: RehashMode
}
export const isVerifyRequest = /* @__PURE__ */ checkFor<VerifyRequest>(VerifyRequest)

/** The owner of the stored hashes of a gateway's own accounts. */
export const ACCOUNTS = 'accounts'

export const ownerOfService = (name: string): string => `service:${name}`

/**
 * The size of a verify request without its passwords, in bytes of JSON. Hashes of up to 193
 * characters fit, as the longest of the PHC string format. Longer ones take a multiple.
 */
const BESIDES_PASSWORDS_BYTES = 256

/**
 * Pads verify requests to one size for any stored hash, and whatever the old system is asked: the
 * size of the sealed request (in blocks) would reveal whether there is one. Workers ignore it.
 */
export function padRequest(request: Requests[JobName]): object {
  if (!('storedHash' in request)) return request
  const { nextPassword: _, typed: __, oldSystem, ...contents } = request
  const besides = Buffer.byteLength(JSON.stringify({ ...contents, password: '', padding: '' }))
  const missing = Math.ceil(besides / BESIDES_PASSWORDS_BYTES) * BESIDES_PASSWORDS_BYTES - besides
  // `true` is shorter than `false`.
  const ofAsk = oldSystem?.ask ? 1 : 0
  return { ...request, padding: ' '.repeat(missing + ofAsk) }
}

/** The sealed contents by job name. */
export interface Requests {
  hash: HashRequest
  verify: VerifyRequest
}

/**
 * The verdict of a job, sealed in Redis. `hash` of a match is a new hash to store: of
 * `nextPassword` if there was one, else of the password if that was due. `hashFollows` is said only
 * to requests with `upgrade`.
 */
const Verdict = {
  type: 'object',
  discriminator: { propertyName: 'kind' },
  required: ['kind'],
  oneOf: [
    objectOf({ kind: { const: 'hashed' }, hash: { type: 'string' } }),
    objectOf({ kind: { const: 'match' } }, { hash: { type: 'string' }, hashFollows: { const: true } }),
    objectOf({ kind: { const: 'mismatch' } }),
    objectOf({
      kind: { const: 'refused' },
      code: { enum: ['unsupported_hash', 'unsupported_password', 'hashing_failed', 'expired', 'unavailable'] },
    }),
  ],
} as const
export type Verdict = FromSchema<{ oneOf: (typeof Verdict)['oneOf'] }>
export const isVerdict = /* @__PURE__ */ checkFor<Verdict>(Verdict)

/**
 * Why a worker refused a job: a stored hash of no supported algorithm or cost, a new password that
 * bcrypt would truncate, a job that would be answered after its deadline. `unavailable`: another
 * system would have had to answer, and did not; the job is set aside (jobs/ticket.ts).
 */
export type RefusalCode = Extract<Verdict, { kind: 'refused' }>['code']
