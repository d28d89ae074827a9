/**
 * Bull Board for operators, who are authenticated by the listener. It shows the times, outcome and
 * worker of each job, and no sealed data. Viewers only look; support may do what loses no login.
 */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import { FastifyAdapter } from '@bull-board/fastify'
import { openQueue, readJob } from '@spillway/queue/jobs/jobs'
import type { RedisConnection } from '@spillway/queue/redis/connect'
import type { RedisWatch } from '@spillway/queue/redis/watch'
import { QUEUE_NAME } from '@spillway/queue/wire/job'
import type { Job, Queue } from 'bullmq'
import type { FastifyPluginAsync } from 'fastify'
import type { Audit } from '../audit/recorder.js'
import type { AuditEventName } from '../audit/store.js'
import type { GatewayConfig } from '../config.js'
import { MAIL_QUEUE } from '../mail/outbox.js'
import { ApiError } from '../plugins/errors.js'
import { problems } from '../schemas/problem-codes.js'
import { describeData, describeJob, describeMail, describeMailData, inOurWords } from './board-words.js'

/** The path of the board on the ops port. */
export const BOARD_PATH = '/queues'
/** The texts of Bull Board's pages, which all have them in this language. */
const LANGUAGE = 'en-US'
const WORDS = `static/locales/${LANGUAGE}/messages.json`
const wordsFile = createRequire(import.meta.url).resolve(`@bull-board/ui/dist/${WORDS}`)

/** The changes that there are, by the last word of their route. No other loses a login. */
const events = new Map<string, AuditEventName>([
  ['pause', 'pause_queue'],
  ['resume', 'resume_queue'],
  ['retry', 'retry_jobs'],
  ['promote', 'promote_jobs'],
])
/** The only state whose jobs it is for. */
const stateFor = new Map<string, string>([
  ['retry_jobs', 'failed'],
  ['promote_jobs', 'delayed'],
])
const refused = (status: 405 | 409, message: string) => ({ allow: false, status, message })
const eventOf = (route = '') => events.get(/\/(\w+)(\/:queueStatus)?$/.exec(route)?.[1] ?? '')

interface BoardOptions {
  config: GatewayConfig
  audit: Audit
  /** One for each server, by address. They stay the caller's to watch and to close. */
  redis: readonly { address: string; connection: RedisConnection }[]
  watch: RedisWatch
}

/** The board's path of a job. Of several Redis servers, each queue shows its address. */
export function pageOf(job: { id?: string | undefined }, address: string, isOnly: boolean): string {
  const queue = `${placeOf(address, isOnly)}${QUEUE_NAME}`
  return `${BOARD_PATH}/queue/${encodeURIComponent(queue)}/${encodeURIComponent(String(job.id))}`
}

const placeOf = (address: string, isOnly: boolean) => (isOnly ? '' : `${address} `)

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
  const { config, audit, redis, watch } = options
  const { QUEUE_PREFIX: prefix, OPS_BASE_PATH: basePath, OPS_LOG_URL: logUrl } = config
  const opened: Queue[] = []
  const externalJobUrl = ({ id }: { id?: unknown }) => ({
    displayText: 'Log',
    href: logUrl.replaceAll('{jobId}', encodeURIComponent(String(id))),
  })

  /** The queues of this name on all servers. */
  const shown = (name: string, options: ConstructorParameters<typeof BullMQAdapter>[1]) =>
    redis.map(({ connection, address }) => {
      const queue = openQueue({ redis: connection, prefix, name, watch })
      opened.push(queue)
      return new ReadableJobs(queue, { prefix: placeOf(address, redis.length === 1), ...options })
    })
  const passwords = shown(QUEUE_NAME, {
    description:
      'Hash and verify jobs; what they carry is sealed. Waiting: a request is held for its answer. In line (prioritized, to BullMQ): a ticket was given.',
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

  const serverAdapter = new FastifyAdapter().setBasePath(`${basePath}${BOARD_PATH}`)
  createBullBoard({
    queues: [...passwords, ...mails],
    serverAdapter,
    options: {
      uiConfig: {
        boardTitle: 'Spillway',
        locale: { lng: LANGUAGE },
        hideDocsLink: true,
        miscLinks: [
          { text: 'Live', url: `${basePath}/` },
          ...(config.AUDIT_RETENTION_DAYS > 0 ? [{ text: 'Audit', url: `${basePath}/audit` }] : []),
          { text: 'Metrics', url: `${basePath}/metrics` },
        ],
        pollingInterval: { showSetting: true },
        // By CLIENT LIST, which needs a right over all connections. The live page has the workers.
        showWorkers: false,
      },
      handlerHooks: {
        async before({ method, route, request }) {
          if (method === 'get') return undefined
          if (eventOf(route) === undefined)
            return refused(405, 'Nobody may do this here: it would lose jobs, or starve them')
          const { queueName = '', jobId, queueStatus } = request.params
          const needed = stateFor.get(eventOf(route) ?? '')
          const job = jobId === undefined ? null : await request.queues.get(queueName)?.getJob(jobId)
          const state = job?.getState === undefined ? queueStatus : await job.getState()
          if (needed === undefined || state === undefined || state === needed) return undefined
          return refused(409, `Only ${needed} jobs: others would be hashed once more, for nobody`)
        },
      },
    },
  })
  // Rethrown errors reach the error handler of the listener. The board reads nothing but Redis.
  serverAdapter.setErrorHandler((error) => {
    const isKnown = error instanceof ApiError || 'statusCode' in error
    throw isKnown ? error : new ApiError('unavailable', { cause: error, reason: 'redis', retryAfterS: 1 })
  })
  app.addHook('onRoute', (route) => {
    const isRead = [route.method].flat().every((method) => method === 'GET' || method === 'HEAD')
    if (!isRead) route.config = { ...route.config, role: 'support' }
  })
  app.addHook(
    'onResponse',
    async ({ id: requestId, operator, ip, method, params, routeOptions, errorCode }, { statusCode }) => {
      const event = method === 'PUT' ? eventOf(routeOptions.url) : undefined
      const outcome = statusCode < 400 ? 'ok' : errorCode
      if (event === undefined || outcome === undefined || operator === undefined) return
      const by = { operator: operator.name, reason: describeTarget(params) }
      audit.record({ event, outcome, ip, requestId, by })
    },
  )
  // The pages of viewers offer no changes, and show a refusal only in Bull Board's form.
  app.addHook('preSerialization', async ({ id, operator, errorCode }, { statusCode }, payload) => {
    if (errorCode === 'role_required')
      return Object.assign({ error: { key: 'ERRORS.FORBIDDEN' }, message: problems[errorCode].detail }, payload)
    if (statusCode >= 400) return { requestId: id, ...Object(payload) }
    return operator?.role === 'viewer' ? readOnly(payload) : payload
  })
  await app.register(serverAdapter.registerPlugin(), { prefix: BOARD_PATH })
  const words = inOurWords(await readFile(wordsFile, 'utf8'))
  app.get(`${BOARD_PATH}/${WORDS}`, async (_request, reply) =>
    reply.type('application/json; charset=utf-8').send(words),
  )

  app.addHook('onClose', async () => {
    await Promise.all(opened.map((queue) => queue.close()))
  })
}

/** What was changed, as the audit names it. */
function describeTarget(params: unknown): string {
  const parts = typeof params === 'object' && params !== null ? Object.values(params) : []
  return parts.length === 0 ? 'all queues' : parts.join(', ')
}

/** The list of queues, without their buttons. */
function readOnly(payload: unknown): unknown {
  if (typeof payload !== 'object' || payload === null || !('queues' in payload) || !Array.isArray(payload.queues))
    return payload
  const queues = payload.queues.map((queue) => ({ ...queue, readOnlyMode: true, allowRetries: false }))
  return { ...payload, queues }
}
