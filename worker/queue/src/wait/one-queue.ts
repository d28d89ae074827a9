/**
 * The client of the password queue of one Redis server: seals passwords into jobs and opens their verdicts.
 *
 * The reply channel is subscribed to at start, before any job is added. A message can be lost with a connection, and a job with a
 * server: Redis itself is asked when a connection is restored, every second, and at the end of a wait.
 */
import { randomUUID } from 'node:crypto'
import { unrefRedis } from '../inside/ioredis.js'
import { probeKey } from '../jobs/keys.js'
import { createRedisClock } from '../redis/clock.js'
import { connectRedis, quitRedis } from '../redis/connect.js'
import { watchEviction } from '../redis/eviction.js'
import type { RedisServer } from '../redis/servers.js'
import { watchRedis } from '../redis/watch.js'
import type { WorkerCapacity } from '../wire/capacity.js'
import { DEFAULT_QUEUE_PREFIX } from '../wire/job.js'
import { createAnswers } from './answers.js'
import { createCancellation } from './cancellation.js'
import { createExpectations } from './expectation.js'
import { readLoad } from './load.js'
import type { PasswordClient, QueueClientOptions } from './password-client.js'
import { createProducer } from './producer.js'
import { createRecheck } from './recheck.js'
import { subscribeToReplies } from './replies.js'
import { createResume } from './resume.js'
import { createSubmit } from './submit.js'
import { createVerdicts } from './verdicts.js'

/** How often Redis is asked without any sign of a failure: messages and jobs may be lost without a trace. */
const RECHECK_INTERVAL_MS = 1_000
/** How long the key of a probe stays. */
const PROBE_MS = 1_000

/** The client of one queue, with what a choice between several needs. */
export interface QueueClient extends PasswordClient {
  /** The live workers at the last reading, by id. */
  workers(): ReadonlyMap<string, WorkerCapacity>
  /** The number of the reading of the load that is under way; undefined while no reading is. */
  reading(): number | undefined
  /** Resolves when Redis takes a small write. */
  probe(): Promise<void>
}

export function createQueueClient({ id, url, address }: RedisServer, options: QueueClientOptions): QueueClient {
  const { keyring, jobLifeMs, log, observer, prefix = DEFAULT_QUEUE_PREFIX, watch = watchRedis(log) } = options
  const replyTo = randomUUID()
  const clock = createRedisClock()
  const redis = connectRedis(url, 'producer')
  watch.watch(redis, 'commands')
  const eviction = watchEviction({ redis, address, log })
  const subscriber = connectRedis(url, 'consumer')
  watch.watch(subscriber, 'replies')
  if (options.background) for (const connection of [redis, subscriber]) unrefRedis(connection)

  const verdicts = createVerdicts({ keyring, log, broken: () => observer?.verdictBroken() })
  const answers = createAnswers(verdicts, (source) => observer?.verdictReceived(source))
  const producer = createProducer({
    ...{ redis, prefix, log, watch },
    telemetry: options.telemetry,
    traceparent: options.traceparent,
  })
  const load = readLoad({ redis, prefix, keyring, clock, log, maxAbsent: options.maxAbsent })
  const expectations = createExpectations({ redis, prefix, load, verdicts })
  const cancellation = createCancellation({ redis, prefix, clock })

  const recheck = createRecheck({
    ...{ redis, prefix, clock, log, answers, producer, cancellation },
    addedAgain: () => observer?.jobAddedAgain(),
  })
  const replies = subscribeToReplies({
    ...{ subscriber, prefix, replyTo, log },
    received: answers.announced,
    subscribed: recheck,
  })
  redis.on('ready', recheck)
  const timer = setInterval(() => {
    void recheck()
    replies.check()
  }, RECHECK_INTERVAL_MS)
  timer.unref()

  const isReady = () => redis.status === 'ready' && replies.isSubscribed()

  return {
    submit: createSubmit({
      ...{ redis, prefix, keyring, clock, replyTo, jobLifeMs, answers, producer, cancellation, load, expectations },
    }),
    ...createResume({ redis, id, prefix, clock, replyTo, answers, expectations }),
    cancel(job) {
      answers.submitted.withdraw(job.id)
      return cancellation.cancel(job)
    },
    whenKnown: load.whenKnown,
    load: load.current,
    finishedJobs: load.finishedJobs,
    hasOtherKeys: load.hasOtherKeys,
    predictedWaitMs: load.predictedWaitMs,
    now: clock.now,
    isReady,
    line: load.line,
    redis: [
      {
        ...{ id, address, connection: redis, isReady, isUsable: () => true },
        ...{ now: clock.now, line: load.line, eviction: eviction.state },
      },
    ],
    workers: load.workers,
    reading: load.reading,
    async probe() {
      await redis.set(probeKey(prefix, replyTo), '', 'PX', PROBE_MS)
    },
    async close() {
      clearInterval(timer)
      load.close()
      cancellation.close()
      await producer.close()
      redis.off('ready', recheck)
      await Promise.all([quitRedis(redis), quitRedis(subscriber)])
    },
  }
}
