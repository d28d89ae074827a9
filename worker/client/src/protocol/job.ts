/**
 * The wire, part one: what a job is called, what it carries, and what its sealed contents look like once opened.
 * Both ends, client and worker, import this file; nobody else does.
 */
import type { FromSchema } from 'json-schema-to-ts'
import { checkFor } from './schema.js'

/** The one queue. Its waiting list, which the autoscaler watches, is `<prefix>:passwords:wait`. */
export const QUEUE_NAME = 'passwords'

/** The braces are a Redis Cluster hash tag: every key of the queue lands in one slot, as BullMQ's scripts need. */
export const DEFAULT_QUEUE_PREFIX = '{spillway}'

export const jobNames = ['hash', 'verify'] as const
export type JobName = (typeof jobNames)[number]

/**
 * `held` jobs go before `deferred` ones, which age: see client/ageing.ts. In BullMQ's terms a deferred job has a priority, and jobs
 * without any go first; the autoscaler counts both.
 */
export type Lane = 'held' | 'deferred'
export const DEFERRED_PRIORITY = 1

/**
 * What stands in Redis for each job, readable to anyone who can read Redis. Times are epoch milliseconds by Redis's clock.
 * `deadline` is authenticated by the seal; `enqueuedAt` and `replyTo` are not, and may cost no more than a wrong metric or
 * a missed notification.
 */
const JobData = {
  type: 'object',
  properties: {
    deadline: { type: 'integer' },
    enqueuedAt: { type: 'integer' },
    replyTo: { type: 'string', maxLength: 64 },
    sealed: { type: 'string', maxLength: 32_768 },
  },
  required: ['deadline', 'enqueuedAt', 'replyTo', 'sealed'],
  additionalProperties: false,
} as const
export type JobData = FromSchema<typeof JobData>
export const isJobData = checkFor<JobData>(JobData)

/**
 * What BullMQ keeps of a finished job for operators: nothing in it is said of whether a password was right. Its times tell it all
 * the same where a match is followed by a second hash, of a new password or because the stored one is below today's policy:
 * `serviceMs`, like BullMQ's own times of start and end, is longer then than any mismatch's.
 */
const JobResult = {
  type: 'object',
  properties: {
    outcome: { enum: ['answered', 'expired'] },
    queueWaitMs: { type: 'number' },
    serviceMs: { type: 'number' },
  },
  required: ['outcome', 'queueWaitMs', 'serviceMs'],
  additionalProperties: false,
} as const
export type JobResult = FromSchema<typeof JobResult>
export const isJobResult = checkFor<JobResult>(JobResult)

/** The sealed contents of a `hash` job. */
const HashRequest = {
  type: 'object',
  properties: { password: { type: 'string' } },
  required: ['password'],
  additionalProperties: false,
} as const
export type HashRequest = FromSchema<typeof HashRequest>
export const isHashRequest = checkFor<HashRequest>(HashRequest)

/**
 * The sealed contents of a `verify` job. `storedHash: null` asks for a decoy: the work of a verify at today's cost that
 * never matches, so that an unknown user takes as long as a known one. `nextPassword` is hashed when the password matches.
 */
const VerifyRequest = {
  type: 'object',
  properties: {
    password: { type: 'string' },
    storedHash: { type: ['string', 'null'] },
    nextPassword: { type: 'string' },
  },
  required: ['password', 'storedHash'],
  additionalProperties: false,
} as const
export type VerifyRequest = FromSchema<typeof VerifyRequest>
export const isVerifyRequest = checkFor<VerifyRequest>(VerifyRequest)

/**
 * What the contents of a verify take besides its passwords, in bytes of JSON. Hashes of up to 212 characters fit, salts of 48 bytes
 * and digests of 64 among them, the longest that the PHC string format has; longer ones take more.
 */
const BESIDES_PASSWORDS_BYTES = 256

/**
 * Has the contents of every verify take the same, whatever its stored hash: else who sees how long they are once they are sealed,
 * in blocks, learns of long passwords whether there was a hash. Workers pass over the padding, those of earlier versions too.
 */
export function padRequest(request: Requests[JobName]): object {
  if (!('storedHash' in request)) return request
  const besides = Buffer.byteLength(JSON.stringify({ password: '', storedHash: request.storedHash, padding: '' }))
  const missing = Math.ceil(besides / BESIDES_PASSWORDS_BYTES) * BESIDES_PASSWORDS_BYTES - besides
  return { ...request, padding: ' '.repeat(missing) }
}

/** The sealed contents by job name. */
export interface Requests {
  hash: HashRequest
  verify: VerifyRequest
}

/**
 * The answer to a job, sealed. `hash` of a match is a fresh hash to store: of `nextPassword` where that was given, else of
 * the password, when the stored hash was below today's policy.
 */
const Verdict = {
  type: 'object',
  discriminator: { propertyName: 'kind' },
  required: ['kind'],
  oneOf: [
    {
      type: 'object',
      properties: { kind: { const: 'hashed' }, hash: { type: 'string' } },
      required: ['kind', 'hash'],
      additionalProperties: false,
    },
    {
      type: 'object',
      properties: { kind: { const: 'match' }, hash: { type: 'string' } },
      required: ['kind'],
      additionalProperties: false,
    },
    {
      type: 'object',
      properties: { kind: { const: 'mismatch' } },
      required: ['kind'],
      additionalProperties: false,
    },
    {
      type: 'object',
      properties: { kind: { const: 'refused' }, code: { enum: ['unsupported_hash', 'hashing_failed'] } },
      required: ['kind', 'code'],
      additionalProperties: false,
    },
  ],
} as const
export type Verdict = FromSchema<{ oneOf: (typeof Verdict)['oneOf'] }>
export const isVerdict = checkFor<Verdict>(Verdict)

/** Why a worker would not do a job: `unsupported_hash` is stored data that no algorithm here understands. */
export type RefusalCode = Extract<Verdict, { kind: 'refused' }>['code']
