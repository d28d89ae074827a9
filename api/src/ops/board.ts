/**
 * Bull Board for operators, whom the listener authenticates. It shows the times, outcome and worker
 * of each job, and no sealed data. Viewers only read; support makes changes that lose no login.
 */
import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import { FastifyAdapter } from '@bull-board/fastify'
import { openQueue, readJob } from '@spillway/queue/bullmq'
import { isJobData, isJobResult, jobNames, QUEUE_NAME } from '@spillway/queue/wire/job'
import type { Job, Queue } from 'bullmq'
import type { FastifyPluginAsync } from 'fastify'
import type { AuditEventName } from '../audit/store.js'
import { ApiError, problems } from '../http/problems.js'
import { isMailData, MAIL_QUEUE } from '../mail/outbox.js'
import type { OperatorDeps } from './change.js'

/** The path of the board on the ops port. */
export const BOARD_PATH = '/queues'

/** The board has no maximum. A page of 30,000 jobs would stall the gateway for seconds. */
const JOBS_PER_PAGE_MAX = 100

/**
 * The allowed changes, by the last word of their route, with the only state of jobs that allows the
 * change. Any other change could lose a login.
 */
const changes = new Map<string, { event: AuditEventName; needed?: string }>([
  ['pause', { event: 'pause_queue' }],
  ['resume', { event: 'resume_queue' }],
  ['retry', { event: 'retry_jobs', needed: 'failed' }],
  ['promote', { event: 'promote_jobs', needed: 'delayed' }],
])
/** Bull Board has no option that hides the other entries of its menus. */
const ALLOWED = 'Support and admins may pause, resume, retry and promote; other entries of the menus are refused.'
const refused = (status: 405 | 409, message: string) => ({ allow: false, status, message })
const changeOf = (route = '') => changes.get(/\/(\w+)(\/:queueStatus)?$/.exec(route)?.[1] ?? '')

/** The path of a job on the board. */
export function pageOf(job: { id?: string | undefined }): string {
  return `${BOARD_PATH}/queue/${QUEUE_NAME}/${encodeURIComponent(String(job.id))}`
}

/** Skips malformed jobs. Otherwise a single forged job would break the whole page. */
class ReadableJobs extends BullMQAdapter {
  readonly #queue: Queue

  constructor(queue: Queue, description: string) {
    super(queue, { description })
    this.#queue = queue
  }

  override async getJob(id: string): Promise<Job | undefined> {
    return await readJob(this.#queue, id)
  }

  override async getJobs(...[statuses, start = 0, end = -1]: Parameters<BullMQAdapter['getJobs']>): Promise<Job[]> {
    // BullMQ keeps the jobs of a paused queue in `wait`.
    const states = statuses.filter((status) => status !== 'paused')
    const ids = await this.#queue.getRanges(states, start, end)
    const jobs = await Promise.all(ids.map((id) => this.getJob(id)))
    return jobs.filter((job) => job !== undefined)
  }
}

export const boardPlugin: FastifyPluginAsync<OperatorDeps> = async (app, deps) => {
  const { config, audit, operatorsRedis: redis, watch } = deps
  const { queuePrefix: prefix, opsBasePath: basePath } = config
  const shown = (name: string, description: string) => {
    const queue = openQueue({ redis, prefix, name, watch })
    app.addHook('onClose', () => queue.close())
    return new ReadableJobs(queue, `${description} ${ALLOWED}`)
  }
  const passwords = shown(
    QUEUE_NAME,
    'Hash and verify jobs; what they carry is sealed. Waiting: a request is held for its answer. Prioritized: a ticket was given.',
  )
  passwords.setFormatter('name', describeJob)
  passwords.setFormatter('data', describeData)
  const queues = [passwords]
  if (config.smtpUrl !== '') {
    const mails = shown(MAIL_QUEUE, 'Mails; what they carry is sealed.')
    mails.setFormatter('name', describeMail)
    mails.setFormatter('data', describeMailData)
    queues.push(mails)
  }

  const serverAdapter = new FastifyAdapter().setBasePath(`${basePath}${BOARD_PATH}`)
  createBullBoard({
    queues,
    serverAdapter,
    options: {
      uiConfig: {
        boardTitle: 'Spillway',
        locale: { lng: 'en-US' },
        hideDocsLink: true,
        miscLinks: [
          { text: 'Live', url: `${basePath}/` },
          ...(config.auditRetentionDays > 0 ? [{ text: 'Audit', url: `${basePath}/audit` }] : []),
          { text: 'Metrics', url: `${basePath}/metrics` },
        ],
        pollingInterval: { showSetting: true },
        // CLIENT LIST needs a right over all connections. The live page shows the workers.
        showWorkers: false,
      },
      handlerHooks: {
        async before({ method, route, request }) {
          if (method === 'get') return undefined
          const change = changeOf(route)
          if (change === undefined) return refused(405, 'Nobody may do this here: it would lose jobs, or starve them')
          const { needed } = change
          const { queueName = '', jobId, queueStatus } = request.params
          const job = jobId === undefined ? null : await request.queues.get(queueName)?.getJob(jobId)
          const state = job?.getState === undefined ? queueStatus : await job.getState()
          if (needed === undefined || state === undefined || state === needed) return undefined
          return refused(409, `Only ${needed} jobs: others would be hashed once more, for nobody`)
        },
      },
    },
  })
  // Rethrown errors reach the error handler of the listener. The board only reads Redis.
  serverAdapter.setErrorHandler((error) => {
    // The name of a queue in a query, which the board decodes once more.
    if (error instanceof URIError) throw new ApiError('malformed_request')
    const isKnown = error instanceof ApiError || 'statusCode' in error
    throw isKnown ? error : new ApiError('unavailable', { cause: error, reason: 'redis', retryAfterS: 1 })
  })
  app.addHook('preHandler', async ({ query }) => {
    const asked = Object(query)
    if (Number(asked.jobsPerPage) > JOBS_PER_PAGE_MAX) asked.jobsPerPage = String(JOBS_PER_PAGE_MAX)
  })
  app.addHook('onRoute', (route) => {
    const isRead = [route.method].flat().every((method) => method === 'GET' || method === 'HEAD')
    if (!isRead) route.config = { ...route.config, role: 'support' }
  })
  app.addHook(
    'onResponse',
    async ({ id: requestId, operator, ip, method, params, routeOptions, errorCode }, { statusCode }) => {
      const event = method === 'PUT' ? changeOf(routeOptions.url)?.event : undefined
      const outcome = statusCode < 400 ? 'ok' : errorCode
      if (event === undefined || outcome === undefined || operator === undefined) return
      const target = Object.values(Object(params)).join(', ') || 'all queues'
      audit.record({ event, outcome, ip, requestId, operator: operator.name, reason: target })
    },
  )
  // The pages of viewers offer no changes, and show a refusal only in Bull Board's format.
  app.addHook('preSerialization', async ({ id, operator, errorCode }, { statusCode }, payload) => {
    if (errorCode === 'role_required')
      return Object.assign({ error: { key: 'ERRORS.FORBIDDEN' }, message: problems[errorCode].detail }, payload)
    if (statusCode >= 400) return { requestId: id, ...Object(payload) }
    return operator?.role === 'viewer' ? readOnly(payload) : payload
  })
  await app.register(serverAdapter.registerPlugin(), { prefix: BOARD_PATH })
}

/** The list of queues, without their buttons. */
function readOnly(payload: unknown): unknown {
  const { queues, ...others } = Object(payload)
  if (!Array.isArray(queues)) return payload
  return { ...others, queues: queues.map((queue) => ({ ...queue, readOnlyMode: true, allowRetries: false })) }
}

// What the board shows of a job. Redis is not trusted, so everything shown is checked.

/** Fields of a BullMQ job. Times are epoch milliseconds by the writer's clock. */
interface ShownJob {
  name: string
  timestamp: number
  processedOn?: number | null
  finishedOn?: number | null
  failedReason?: string
  returnvalue?: unknown
}

/** The title of a job, such as `verify · answered: waited 1.2 s, hashed in 14 ms`. */
export function describeJob({ name, timestamp, processedOn, returnvalue, failedReason }: ShownJob): string {
  const title = jobNames.find((known) => known === name) ?? 'unknown job'
  if (isJobResult(returnvalue)) {
    const { outcome, queueWaitMs, serviceMs } = returnvalue
    const end = outcome === 'skipped' ? '' : `, hashed in ${duration(serviceMs)}`
    return `${title} · ${outcome}: waited ${duration(queueWaitMs)}${end}`
  }
  if (failedReason) return `${title} · failed`
  return processedOn ? `${title} · waited ${duration(processedOn - timestamp)}` : title
}

/** The times of a job and the id of its request, shown in place of its data. */
export function describeData(data: unknown): Record<string, unknown> {
  if (!isJobData(data)) return { malformed: true }
  const { requestId, enqueuedAt, deadline } = data
  return { ...(requestId && { requestId }), enqueuedAt: iso(enqueuedAt), deadline: iso(deadline) }
}

/** The title of a mail. The board also shows the reason of a failure, which names no address. */
export function describeMail({ failedReason, finishedOn }: ShownJob): string {
  return failedReason ? `mail · ${finishedOn ? 'not sent' : 'to be tried again'}` : 'mail'
}

/** The time until which a mail may be sent, shown in place of its data. */
export function describeMailData(data: unknown): Record<string, unknown> {
  return isMailData(data) ? { deadline: iso(data.deadline) } : { malformed: true }
}

function duration(ms: number): string {
  return ms < 1_000 ? `${Math.round(Math.max(0, ms))} ms` : `${(ms / 1_000).toFixed(1)} s`
}

/** Undefined for an invalid date. */
function iso(epochMs: number): string | undefined {
  const date = new Date(epochMs)
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}
