/**
 * Bull Board for operators, as a Fastify plugin. The listener authenticates its users. It shows the times, outcome and worker of each
 * job, and no sealed data.
 */
import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import { FastifyAdapter } from '@bull-board/fastify'
import { openQueue, readJob } from '@spillway/queue/jobs/open-queue'
import type { RedisConnection } from '@spillway/queue/redis/connect'
import type { RedisWatch } from '@spillway/queue/redis/watch'
import type { Job, Queue } from 'bullmq'
import type { FastifyPluginAsync } from 'fastify'
import { MAIL_QUEUE } from '../mail/outbox.js'
import { describeData, describeJob, describeMail, describeMailData } from './board-words.js'

export interface BoardOptions {
  /** A queue for each, by its address where there are several. They stay the caller's to watch and to close. */
  redis: readonly { address: string; connection: RedisConnection }[]
  watch: RedisWatch
  queuePrefix: string
  /** Refuses every change with 405. */
  readOnly: boolean
  /** The path at which the plugin is registered. */
  path: string
  /** What a proxy has before that path; empty for nothing. */
  basePath: string
  /** The URL of a log search, with `{jobId}` in it; empty for no link. */
  logUrl: string
  /** Whether the queue of mails is shown too. */
  showsMail: boolean
  /** Links to other pages of the listener. */
  links: { text: string; url: string }[]
}

/** Skips malformed jobs: a single forged one would otherwise break the whole page. */
class ReadableJobs extends BullMQAdapter {
  readonly #queue: Queue

  constructor(queue: Queue, options: ConstructorParameters<typeof BullMQAdapter>[1]) {
    super(queue, options)
    this.#queue = queue
  }

  override async getJob(id: string): Promise<Job | undefined> {
    const job = await readJob(this.#queue, id)
    return job === 'malformed' ? undefined : job
  }

  override async getJobs(...[statuses, start = 0, end = -1]: Parameters<BullMQAdapter['getJobs']>): Promise<Job[]> {
    // BullMQ keeps the jobs of a paused queue in `wait`.
    const states = statuses.filter((status) => status !== 'paused')
    const ids = await this.#queue.getRanges(states, start, end)
    const jobs = await Promise.all(ids.map((id) => this.getJob(id)))
    return jobs.filter((job) => job !== undefined)
  }
}

export const boardPlugin: FastifyPluginAsync<BoardOptions> = async (app, options) => {
  const { redis, watch, queuePrefix, readOnly, path, basePath, logUrl, showsMail, links } = options
  const queues = redis.map(({ connection }) => openQueue({ redis: connection, prefix: queuePrefix, watch }))

  /** Before the name of its queue. */
  const placeOf = (n: number) => (redis.length === 1 ? {} : { prefix: `${redis[n]?.address} ` })
  const shown = queues.map(
    (queue, n) =>
      new ReadableJobs(queue, {
        ...placeOf(n),
        readOnlyMode: readOnly,
        description: 'Hash and verify jobs; what they carry is sealed',
        ...(logUrl === ''
          ? {}
          : {
              externalJobUrl: ({ id }) => ({
                displayText: 'Log',
                href: logUrl.replaceAll('{jobId}', encodeURIComponent(String(id))),
              }),
            }),
      }),
  )
  for (const queue of shown) {
    queue.setFormatter('name', describeJob)
    queue.setFormatter('data', describeData)
  }

  const mailQueues = showsMail
    ? redis.map(({ connection }) => openQueue({ redis: connection, prefix: queuePrefix, name: MAIL_QUEUE, watch }))
    : []
  const shownMail = mailQueues.map(
    (queue, n) =>
      new ReadableJobs(queue, {
        ...placeOf(n),
        readOnlyMode: readOnly,
        description: 'Mails; what they carry is sealed',
      }),
  )
  for (const queue of shownMail) {
    queue.setFormatter('name', describeMail)
    queue.setFormatter('data', describeMailData)
  }

  const serverAdapter = new FastifyAdapter().setBasePath(`${basePath}${path}`)
  createBullBoard({
    queues: [...shown, ...shownMail],
    serverAdapter,
    options: {
      uiConfig: {
        boardTitle: 'Spillway',
        hideDocsLink: true,
        miscLinks: links,
        pollingInterval: { showSetting: true },
      },
      handlerHooks: {
        // Bull Board's own read-only mode answers some changes with 200 and does nothing.
        before: ({ method }) =>
          readOnly && method !== 'get'
            ? { allow: false, status: 405, message: 'The queue is read-only here' }
            : undefined,
      },
    },
  })
  // Rethrown errors reach the error handler of the listener.
  serverAdapter.setErrorHandler((error) => {
    throw error
  })
  await app.register(serverAdapter.registerPlugin(), { prefix: path })

  app.addHook('onClose', async () => {
    await Promise.all([...queues, ...mailQueues].map((queue) => queue.close()))
  })
}
