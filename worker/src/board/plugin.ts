/**
 * Bull Board for operators, as a Fastify plugin. The listener authenticates its users. It shows the times, outcome and worker of each
 * job, and no sealed data.
 */
import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import { FastifyAdapter } from '@bull-board/fastify'
import { openQueue } from '@spillway/client/queue/open-queue'
import { readJob } from '@spillway/client/queue/read-job'
import type { RedisConnection } from '@spillway/client/redis/connect'
import type { RedisWatch } from '@spillway/client/redis/watch'
import type { Job, Queue } from 'bullmq'
import type { FastifyPluginAsync } from 'fastify'
import { describeData, describeJob } from './words.js'

export interface BoardOptions {
  /** Stays the caller's to watch and to close. */
  redis: RedisConnection
  watch: RedisWatch
  queuePrefix: string
  /** Refuses every change with 405. */
  readOnly: boolean
  /** The path under which the plugin is registered. */
  basePath: string
  /** The URL of a log search, with `{jobId}` in it; empty for none. */
  logUrl: string
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
  const { redis, watch, queuePrefix, readOnly, basePath, logUrl, links } = options
  const queue = openQueue({ redis, prefix: queuePrefix, watch })

  const shown = new ReadableJobs(queue, {
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
  })
  shown.setFormatter('name', describeJob)
  shown.setFormatter('data', describeData)

  const serverAdapter = new FastifyAdapter().setBasePath(basePath)
  createBullBoard({
    queues: [shown],
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
  await app.register(serverAdapter.registerPlugin(), { prefix: basePath })

  app.addHook('onClose', () => queue.close())
}
