/**
 * Bull Board for operators, who are authenticated by the listener. It shows the times, outcome and
 * worker of each job, and no sealed data.
 */
import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import { FastifyAdapter } from '@bull-board/fastify'
import { openQueue, readJob } from '@spillway/queue/jobs/open-queue'
import type { RedisConnection } from '@spillway/queue/redis/connect'
import type { RedisWatch } from '@spillway/queue/redis/watch'
import { QUEUE_NAME } from '@spillway/queue/wire/job'
import type { Job, Queue } from 'bullmq'
import type { FastifyPluginAsync } from 'fastify'
import type { GatewayConfig } from '../config.js'
import { MAIL_QUEUE } from '../mail/outbox.js'
import { describeData, describeJob, describeMail, describeMailData } from './board-words.js'

interface BoardOptions {
  config: GatewayConfig
  /** One for each server, by address. They stay the caller's to watch and to close. */
  redis: readonly { address: string; connection: RedisConnection }[]
  watch: RedisWatch
  /** The path at which the plugin is registered. */
  path: string
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

export const boardPlugin: FastifyPluginAsync<BoardOptions> = async (app, { config, redis, watch, path }) => {
  const { QUEUE_PREFIX: prefix, OPS_ALLOW_WRITES, OPS_BASE_PATH: basePath, OPS_LOG_URL: logUrl } = config
  const readOnly = !OPS_ALLOW_WRITES
  const opened: Queue[] = []
  const externalJobUrl = ({ id }: { id?: unknown }) => ({
    displayText: 'Log',
    href: logUrl.replaceAll('{jobId}', encodeURIComponent(String(id))),
  })

  /** The queues of this name on all servers. Of several servers, each queue shows its address. */
  const shown = (name: string, options: ConstructorParameters<typeof BullMQAdapter>[1]) =>
    redis.map(({ connection, address }) => {
      const queue = openQueue({ redis: connection, prefix, name, watch })
      opened.push(queue)
      const place = redis.length === 1 ? {} : { prefix: `${address} ` }
      return new ReadableJobs(queue, { ...place, readOnlyMode: readOnly, ...options })
    })
  const passwords = shown(QUEUE_NAME, {
    description: 'Hash and verify jobs; what they carry is sealed',
    ...(logUrl === '' ? {} : { externalJobUrl }),
  })
  for (const queue of passwords) {
    queue.setFormatter('name', describeJob)
    queue.setFormatter('data', describeData)
  }
  const mails = config.SMTP_URL === '' ? [] : shown(MAIL_QUEUE, { description: 'Mails; what they carry is sealed' })
  for (const queue of mails) {
    queue.setFormatter('name', describeMail)
    queue.setFormatter('data', describeMailData)
  }

  const serverAdapter = new FastifyAdapter().setBasePath(`${basePath}${path}`)
  createBullBoard({
    queues: [...passwords, ...mails],
    serverAdapter,
    options: {
      uiConfig: {
        boardTitle: 'Spillway',
        hideDocsLink: true,
        miscLinks: [
          { text: 'Live', url: `${basePath}/` },
          { text: 'Metrics', url: `${basePath}/metrics` },
        ],
        pollingInterval: { showSetting: true },
        // By CLIENT LIST, which needs a right over all connections. The live page has the workers.
        showWorkers: false,
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
    await Promise.all(opened.map((queue) => queue.close()))
  })
}
