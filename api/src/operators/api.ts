/** The API for operators on the ops port: accounts, blocked networks, jobs, and its description. */
import type { FastifyPluginAsyncJsonSchemaToTs } from '@fastify/type-provider-json-schema-to-ts'
import { openQueue, readJob } from '@spillway/queue/jobs/jobs'
import type { RedisConnection, RedisWatch } from '@spillway/queue/queue-client'
import { isJobData, REQUEST_ID } from '@spillway/queue/wire/job'
import { objectOf } from '@spillway/queue/wire/object-schema'
import type { Job, Queue } from 'bullmq'
import { docsPlugin, operatorDocs } from '../plugins/docs.js'
import { ApiError, orUnavailable } from '../plugins/errors.js'
import { NetworkField } from '../schemas/credentials.js'
import { anyProblem, limitProblem, problemResponse } from '../schemas/responses.js'
import { accountChangeRoutes } from './account-changes.js'
import { accountStateRoutes } from './account-state.js'
import { pageOf } from './board.js'
import { changeResponses, type OperatorDeps, Reason, recordChange, recordRefusals } from './change.js'

const text = { type: 'string' } as const
const time = { type: 'string', format: 'date-time' } as const
const BlocksBody = {
  title: 'Blocks',
  ...objectOf({
    blocks: {
      type: 'array',
      items: {
        title: 'Block',
        ...objectOf({ network: text, until: time, operator: text, reason: text, createdAt: time }),
      },
    },
  }),
} as const

const blockRoutes: FastifyPluginAsyncJsonSchemaToTs<{ Options: OperatorDeps }> = async (app, { blocks, audit }) => {
  const tags = ['Networks']

  app.get(
    '/v1/blocks',
    {
      schema: {
        operationId: 'listBlocks',
        tags,
        summary: 'Blocked networks',
        response: { 200: BlocksBody, ...anyProblem },
      },
    },
    async () => ({ blocks: await blocks.list() }),
  )

  app.post(
    '/v1/blocks',
    {
      config: { role: 'admin', event: 'block_network' },
      schema: {
        operationId: 'blockNetwork',
        tags,
        summary: 'Block an address or a network',
        description: 'All gateways refuse its requests within a second. An IPv6 address stands for its /64.',
        body: { title: 'NewBlock', ...objectOf({ network: NetworkField, until: time, reason: Reason }) },
        response: changeResponses,
      },
    },
    async (request) => {
      const { until, reason, network } = request.body
      if (Date.parse(until) <= Date.now())
        throw new ApiError('invalid_request', { fields: [{ field: 'until', message: 'must be in the future' }] })
      const blocked = await blocks.add({ network, until, reason, operator: request.operator.name })
      recordChange(audit, request, { event: 'block_network', reason, ip: blocked })
      return { changed: 1 }
    },
  )

  app.post(
    '/v1/blocks/lift',
    {
      config: { role: 'admin', event: 'unblock_network' },
      schema: {
        ...{ operationId: 'unblockNetwork', tags, summary: 'Unblock an address or a network' },
        body: { title: 'BlockToLift', ...objectOf({ network: NetworkField, reason: Reason }) },
        response: changeResponses,
      },
    },
    async (request) => {
      const { network, reason } = request.body
      const lifted = await blocks.remove(network)
      const changed = lifted === undefined ? 0 : 1
      recordChange(audit, request, { event: 'unblock_network', reason, ip: lifted ?? network, changed })
      return { changed }
    },
  )
}

interface JobOptions {
  /** One for each Redis server. */
  operatorsRedis: readonly { address: string; connection: RedisConnection }[]
  watch: RedisWatch
  queuePrefix: string
}

/** Jobs that are read at a time: others' commands go between. */
const PAGE = 100
const STATES = ['active', 'wait', 'prioritized', 'failed', 'completed', 'delayed'] as const

const jobRoutes: FastifyPluginAsyncJsonSchemaToTs<{ Options: JobOptions }> = async (app, options) => {
  const { operatorsRedis, watch, queuePrefix: prefix } = options
  const queues = operatorsRedis.map(({ connection, address }) => ({
    address,
    queue: openQueue({ redis: connection, prefix, watch }),
  }))
  app.addHook('onClose', async () => {
    await Promise.all(queues.map(({ queue }) => queue.close()))
  })

  app.get(
    '/v1/jobs/:requestId',
    {
      schema: {
        operationId: 'findJob',
        tags: ['Jobs'],
        summary: 'The password job of a request',
        description: 'Reads the jobs of the queue in turn. A job is kept for a short time after it has ended.',
        params: objectOf({ requestId: { type: 'string', pattern: REQUEST_ID } }),
        response: {
          200: {
            title: 'Job',
            ...objectOf({
              jobId: text,
              page: { ...text, description: 'Of the job on the board: a path of the ops port' },
              server: { ...text, description: 'The Redis server that has it' },
              state: { ...text, description: 'In line, with a ticket; waiting, active, failed, completed or delayed' },
              paused: { type: 'boolean', description: 'Whether operators have paused its queue' },
              enqueuedAt: time,
              deadline: time,
            }),
          },
          404: problemResponse,
          ...anyProblem,
        },
      },
    },
    async ({ params: { requestId } }) => {
      for (const { address, queue } of queues) {
        const job = await orUnavailable(jobOf(queue, requestId))
        if (job === undefined) continue
        const { enqueuedAt, deadline } = job.data
        return {
          ...{ jobId: String(job.id), page: pageOf(job, address, queues.length === 1), server: address },
          ...(await orUnavailable(standingOf(job, queue))),
          enqueuedAt: new Date(enqueuedAt).toISOString(),
          deadline: new Date(deadline).toISOString(),
        }
      }
      throw new ApiError('job_not_found')
    },
  )
}

async function standingOf(job: Job, queue: Queue) {
  const state = await job.getState()
  return { state: state === 'prioritized' ? 'in line' : state, paused: await queue.isPaused() }
}

async function jobOf(queue: Queue, requestId: string): Promise<Job | undefined> {
  for (const state of STATES) {
    for (let start = 0; ; start += PAGE) {
      const ids = await queue.getRanges([state], start, start + PAGE - 1)
      const jobs = await Promise.all(ids.map((id) => readJob(queue, id)))
      for (const job of jobs)
        if (job !== undefined && job !== 'malformed' && isJobData(job.data) && job.data.requestId === requestId)
          return job
      if (ids.length < PAGE) break
    }
  }
  return undefined
}

/** To be registered behind the authentication of operators. */
export const operatorApiPlugin: FastifyPluginAsyncJsonSchemaToTs<{ Options: OperatorDeps & JobOptions }> = async (
  app,
  options,
) => {
  recordRefusals(app, options.audit)
  await app.register(docsPlugin, operatorDocs)
  app.addHook('onRoute', ({ schema, config: { role = 'viewer' } = {} }) => {
    if (schema === undefined) return
    const { description, response } = schema
    const said = [description, `For the role ${role}${role === 'admin' ? '.' : ', or a higher one.'}`]
    Object.assign(schema, {
      ...{
        description: said.filter((each) => each !== undefined).join(' '),
        security: [{ operator: [] }],
        'x-role': role,
      },
      response: { ...Object(response), 401: problemResponse, 429: limitProblem },
    })
  })
  await app.register(accountStateRoutes, options)
  await app.register(accountChangeRoutes, options)
  await app.register(blockRoutes, options)
  await app.register(jobRoutes, options)
}
