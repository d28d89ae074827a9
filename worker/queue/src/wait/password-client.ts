/** The client of the password queue, in one Redis server or in several. */
import type { Logger } from '@spillway/common/throttled-warning'
import type { Telemetry } from 'bullmq'
import type { RedisConnection } from '../redis/connect.js'
import type { Eviction } from '../redis/eviction.js'
import type { RedisWatch } from '../redis/watch.js'
import type { Load } from '../wire/capacity.js'
import type { JobName, Lane, Requests } from '../wire/job.js'
import type { JobRef } from '../wire/reply.js'
import type { Keyring } from '../wire/seal.js'
import type { PendingJob, ResumedJob, VerdictSource } from './answers.js'
import type { Line } from './load-state.js'

export interface ClientObserver {
  verdictReceived(source: VerdictSource): void
  verdictBroken(): void
  jobAddedAgain(): void
  /** A job was added to another Redis server, because its own does not answer. */
  jobMoved?(): void
}

export interface QueueClientOptions {
  prefix?: string
  keyring: Keyring
  /** Milliseconds from submitting a job to its deadline: its verdict can be read until then. */
  jobLifeMs: number
  log: Logger
  /**
   * Cap of tickets that are absent, or have come back and wait [none]. Above it the oldest absent
   * ones are dropped, those behind first. Of several clients of a queue the lowest cap holds.
   */
  maxAbsent?: number
  /** Whether connections keep the process alive only while a call waits [false: always]. */
  background?: boolean
  /** Logs the failures of this client's connections [a watch of its own]. */
  watch?: RedisWatch
  observer?: ClientObserver
  /** Adds the submission of a job to the active trace. */
  telemetry?: Telemetry
  /** In place of `telemetry`: the W3C trace context to which spans of workers belong. */
  traceparent?: (() => string | undefined) | undefined
}

/** One Redis server, with the connection for commands, which fails fast. */
export interface RedisOfQueue {
  /** As tickets name it. */
  id: string
  /** Without user and password. */
  address: string
  connection: RedisConnection
  isReady(): boolean
  /** Whether it answers in time and takes writes. Always true with one Redis server. */
  isUsable(): boolean
  /** Whether it is ready and refuses no write, as a full or read-only server does: it is asked. */
  takesWrites(): Promise<boolean>
  /** Epoch milliseconds by its clock. */
  now(): number
  /** How far its line has come. */
  line(): Line
  /** Whether it may evict keys; undefined until it was asked. */
  eviction(): Eviction | undefined
}

export interface SubmitOptions {
  /** [held] */
  lane?: Lane
  /** A whole number of milliseconds [jobLifeMs]. */
  lifeMs?: number | undefined
  /** How long a deferred job's request is held before its ticket, in milliseconds [lifeMs]. */
  waitMs?: number
  /** Of the request that needs it, for log lines and operators. */
  requestId?: string | undefined
}

export interface PasswordClient {
  /** Adds a job. Throws `queue_unavailable` when Redis does not accept it. */
  submit<Name extends JobName>(name: Name, request: Requests[Name], options?: SubmitOptions): Promise<PendingJob>
  /**
   * Waits for a job that this or another gateway added, for so many milliseconds [until its
   * deadline]; its client is present meanwhile, unless it is not to be [true]. Throws
   * `held_too_often` when eight requests already wait for the job here, and `queue_unavailable`
   * when Redis does not answer.
   */
  resume(job: JobRef, waitMs?: number, isPresent?: boolean): Promise<ResumedJob>
  /** The client that waited by a ticket went away: its place ends after a grace. Never rejects. */
  left(job: JobRef): Promise<void>
  /** Removes a job, now or once Redis answers. True when no worker had taken it. */
  cancel(job: JobRef): Promise<boolean>
  /** Resolves once the queue has been read, or after this time without success. */
  whenKnown(waitMs: number): Promise<void>
  /** The state of the queue, at most a quarter of a second old. */
  load(): Load
  /** Jobs that workers reported as finished since this process started; never decreases. */
  finishedJobs(): number
  /** Whether all workers have other keys, so that there will be no verdict. */
  hasOtherKeys(): boolean
  /** Milliseconds to the answer of a job added now; Infinity without workers, or when paused. */
  predictedWaitMs(lane: Lane): number
  /** Epoch milliseconds by the clock of the job's Redis server [the first]. */
  now(job?: JobRef): number
  /** Whether there is a Redis server that can be reached. */
  isReady(): boolean
  /** How far the line has come in which this job is. */
  line(job: JobRef): Line
  /** The Redis of the queue, in the order of the setting. */
  redis: readonly RedisOfQueue[]
  close(): Promise<void>
}
