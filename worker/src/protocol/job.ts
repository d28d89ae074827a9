/**
 * The wire, part one: what a job is called, what it carries, and what its sealed contents look like once opened.
 * Both ends, client and worker, import this file; nobody else does.
 */
import Type, { type Static } from 'typebox'
import { Compile } from 'typebox/compile'

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
const JobData = Type.Object({
  deadline: Type.Integer(),
  enqueuedAt: Type.Integer(),
  replyTo: Type.String({ maxLength: 64 }),
  sealed: Type.String({ maxLength: 32_768 }),
})
export type JobData = Static<typeof JobData>
export const jobData = Compile(JobData)

/** What BullMQ keeps of a finished job for operators. It must not tell a right password from a wrong one. */
const JobResult = Type.Object({
  outcome: Type.Union([Type.Literal('answered'), Type.Literal('expired')]),
  queueWaitMs: Type.Number(),
  serviceMs: Type.Number(),
})
export type JobResult = Static<typeof JobResult>
export const jobResult = Compile(JobResult)

/** The sealed contents of a `hash` job. */
const HashRequest = Type.Object({ password: Type.String() })
export type HashRequest = Static<typeof HashRequest>

/**
 * The sealed contents of a `verify` job. `storedHash: null` asks for a decoy: the work of a verify at today's cost that
 * never matches, so that an unknown user takes as long as a known one. `nextPassword` is hashed when the password matches.
 */
const VerifyRequest = Type.Object({
  password: Type.String(),
  storedHash: Type.Union([Type.String(), Type.Null()]),
  nextPassword: Type.Optional(Type.String()),
})
export type VerifyRequest = Static<typeof VerifyRequest>

/** The sealed contents by job name. */
export interface Requests {
  hash: HashRequest
  verify: VerifyRequest
}
/** Their checks. */
export const requests = { hash: Compile(HashRequest), verify: Compile(VerifyRequest) }

/** Why a worker would not do a job: `unsupported_hash` is stored data that no algorithm here understands. */
const RefusalCode = Type.Union([Type.Literal('unsupported_hash'), Type.Literal('hashing_failed')])
export type RefusalCode = Static<typeof RefusalCode>

/**
 * The answer to a job, sealed. `hash` of a match is a fresh hash to store: of `nextPassword` where that was given, else of
 * the password, when the stored hash was below today's policy.
 */
const Verdict = Type.Union([
  Type.Object({ kind: Type.Literal('hashed'), hash: Type.String() }),
  Type.Object({ kind: Type.Literal('match'), hash: Type.Optional(Type.String()) }),
  Type.Object({ kind: Type.Literal('mismatch') }),
  Type.Object({ kind: Type.Literal('refused'), code: RefusalCode }),
])
export type Verdict = Static<typeof Verdict>
export const verdict = Compile(Verdict)
