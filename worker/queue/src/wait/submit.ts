/** Submitting a job: seal the request, register the waiter, add the job. */
import { PasswordClientError } from '../errors.js'
import { enterLine, presentMs } from '../jobs/ticket.js'
import type { RedisClock } from '../redis/clock.js'
import type { RedisConnection } from '../redis/connect.js'
import { newId } from '../wire/id.js'
import { type JobData, type JobName, type Lane, padRequest, type Requests, SEALED_MAX_LENGTH } from '../wire/job.js'
import { type JobRef, requestSeal } from '../wire/reply.js'
import type { Keyring } from '../wire/seal.js'
import type { Answers, PendingJob } from './answers.js'
import type { Cancellation } from './cancellation.js'
import type { Expectations } from './expectation.js'
import { type LoadReader, READ_INTERVAL_MS } from './load.js'
import type { Producer } from './producer.js'

export type Submit = <Name extends JobName>(
  name: Name,
  request: Requests[Name],
  lane?: Lane,
  lifeMs?: number,
  /** How long a deferred job is waited for before its client gets a ticket, in milliseconds [lifeMs]. */
  holdMs?: number,
) => Promise<PendingJob>

export function createSubmit(deps: {
  redis: RedisConnection
  prefix: string
  keyring: Keyring
  clock: RedisClock
  replyTo: string
  jobLifeMs: number
  answers: Answers
  producer: Producer
  cancellation: Cancellation
  load: LoadReader
  expectations: Expectations
}): Submit {
  const { redis, prefix, keyring, clock, replyTo, jobLifeMs, answers, producer, cancellation, load, expectations } =
    deps
  const { submitted } = answers

  /** Where Redis does not say, the job has no number, and is never passed over. */
  async function numberOf(job: JobRef, lane: Lane, lifeMs: number, holdMs: number): Promise<number | undefined> {
    const presence = lane === 'behind' ? undefined : { replyTo, forMs: presentMs(holdMs, lifeMs) }
    const number = await enterLine(redis, prefix, job, presence, load.line().last).catch(() => undefined)
    if (number !== undefined) load.numbered(number)
    return number
  }

  return async (name, request, lane = 'held', lifeMs = jobLifeMs, holdMs = lifeMs) => {
    // In an outage this fails before a job exists that would have to be cancelled. With a connection nothing is awaited here: the
    // active trace context lasts until the first await.
    if (redis.status !== 'ready') await producer.connected()
    const enqueuedAt = clock.now()
    const job: JobRef = { id: newId(), name, deadline: enqueuedAt + lifeMs }
    const sealed = keyring.seal(requestSeal(job), padRequest(request))
    if (sealed.length > SEALED_MAX_LENGTH)
      throw new PasswordClientError('request_too_long', 'the request is longer than workers accept')
    const data: JobData = { deadline: job.deadline, enqueuedAt, replyTo, sealed }
    // The waiter is registered before the job is added, so that no answer can come too early.
    const waiter = submitted.hold(job)
    try {
      await producer.addWithRetry(job, data, lane)
      submitted.added(job.id, data)
    } catch (error) {
      submitted.release(job.id)
      // Redis may have run a command whose answer was lost.
      void cancellation.cancel(job)
      throw error
    }
    const isInLine = lane === 'deferred' || lane === 'behind'
    const number = isInLine ? await numberOf(job, lane, lifeMs, holdMs) : undefined
    const { waiting, deferred } = load.current()
    if (!isInLine && deferred > 0) producer.promoteOldestDeferred()
    if (lane === 'known' && waiting > 0) producer.bringForward(job.id)
    load.added(lane)
    const addedAt = performance.now()
    // Its client has a ticket from then on, which nobody may come for.
    const presence = () => ({ replyTo, forMs: presentMs(0, job.deadline - clock.now()) })
    return answers.pendingSubmitted(waiter, {
      ask: () => expectations.ask(job, isInLine ? undefined : presence()),
      known: () => (performance.now() - addedAt < READ_INTERVAL_MS ? expectations.ofNew(lane, number) : undefined),
    })
  }
}
