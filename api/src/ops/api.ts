/** The API for operators on the ops port: accounts, blocked networks, jobs, and its description. */
import { listOf } from '@spillway/common/settings'
import { openQueue, readJob, readJobData } from '@spillway/queue/bullmq'
import { isJobData, REQUEST_ID } from '@spillway/queue/wire/job'
import { objectOf } from '@spillway/queue/wire/object-schema'
import type { Job } from 'bullmq'
import { docsPlugin, operatorDocs } from '../http/docs.js'
import { ApiError, invalid, orUnavailable, orUnknown } from '../http/problems.js'
import { AddressRanges, rangeOf } from '../http/requests.js'
import { BLOCKS_MAX } from '../limits/blocks.js'
import { NetworkField } from '../schemas/credentials.js'
import { anyProblem, limitProblem, problemResponse } from '../schemas/responses.js'
import { accountChangeRoutes } from './account-changes.js'
import { accountExportRoutes } from './account-export.js'
import { accountStateRoutes, text, time } from './account-state.js'
import { pageOf } from './board.js'
import { changeResponses, type OperatorRoutes, Reason, recordChange, recordRefusals } from './change.js'

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

const blockRoutes: OperatorRoutes = async (app, options) => {
  const { blocks, audit, database, reads, config } = options
  const tags = ['Networks']
  const proxies = new AddressRanges(listOf(config.trustProxy))
  const ipv4InIpv6 = new AddressRanges(['::ffff:0:0/96'])

  app.get(
    '/v1/blocks',
    {
      schema: {
        operationId: 'listBlocks',
        tags,
        summary: 'List the blocked networks',
        response: { 200: BlocksBody, ...anyProblem },
      },
    },
    async (request) => ({ blocks: await reads.next(request, () => blocks.list(database)) }),
  )

  app.post(
    '/v1/blocks',
    {
      config: { role: 'admin', event: 'block_network' },
      schema: {
        operationId: 'blockNetwork',
        tags,
        summary: 'Block an address or a network',
        description:
          'All gateways refuse its requests within a second. An IPv6 address means its /64. A network with a proxy of TRUST_PROXY is refused. ' +
          `There are at most ${BLOCKS_MAX} blocks.`,
        body: { title: 'NewBlock', ...objectOf({ network: NetworkField, until: time, reason: Reason }) },
        response: changeResponses,
      },
    },
    async (request) => {
      const { reason, network } = request.body
      const until = new Date(request.body.until)
      // JavaScript has no leap seconds, so such a time is not valid.
      if (!(until.getTime() > Date.now())) throw invalid('until', 'must be in the future')
      // Node matches IPv4 clients with these ranges, so the least length of a range would not hold.
      if (/:.*\//.test(network) && ipv4InIpv6.overlaps(network)) throw invalid('network', 'must be written as IPv4')
      if (proxies.overlaps(rangeOf(network))) throw invalid('network', 'must contain no proxy of TRUST_PROXY')
      const blocked = await orUnknown(blocks.add({ network, until, reason, operator: request.operator.name }))
      if (blocked === undefined)
        throw invalid('network', `must be one of ${BLOCKS_MAX} at most: lift others, or block it at a firewall`)
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
      const lifted = await orUnknown(blocks.remove(network))
      const changed = lifted === undefined ? 0 : 1
      recordChange(audit, request, { event: 'unblock_network', reason, ip: lifted ?? network, changed })
      return { changed }
    },
  )
}

/** Jobs that are read at a time, so that other commands run in between. */
const PAGE = 100
const STATES = ['active', 'wait', 'prioritized', 'failed', 'completed', 'delayed'] as const

const jobRoutes: OperatorRoutes = async (app, options) => {
  const { reads, operatorsRedis: redis, watch, config } = options
  const { queuePrefix: prefix } = config
  const queue = openQueue({ redis, prefix, watch })
  app.addHook('onClose', () => queue.close())

  /** @param signal ends the search; then undefined, as for a job that is not there */
  async function findJob(requestId: string, signal: AbortSignal): Promise<Job | undefined> {
    for (const state of STATES) {
      for (let start = 0; !signal.aborted; start += PAGE) {
        const ids = await queue.getRanges([state], start, start + PAGE - 1)
        // To parse all fields of all jobs would take a long line many times as long.
        const written = await Promise.all(ids.map((id) => readJobData(redis, prefix, id)))
        for (const id of ids.filter((_, n) => written[n]?.includes(`"${requestId}"`))) {
          const job = await readJob(queue, id)
          if (job !== undefined && isJobData(job.data) && job.data.requestId === requestId) return job
        }
        if (ids.length < PAGE) break
      }
    }
    return undefined
  }

  app.get(
    '/v1/jobs/:requestId',
    {
      schema: {
        operationId: 'findJob',
        tags: ['Jobs'],
        summary: 'Find the password job of a request',
        description: 'Searches all jobs of the queue. A job is kept for a short time after it has ended.',
        params: objectOf({ requestId: { type: 'string', pattern: REQUEST_ID } }),
        response: {
          200: {
            title: 'Job',
            ...objectOf({
              jobId: text,
              page: { ...text, description: 'The page of the job on the board, as a path of the ops port' },
              state: { ...text, description: 'In line (with a ticket), waiting, active, failed, completed or delayed' },
              paused: { type: 'boolean', description: 'Whether operators have paused the queue' },
              enqueuedAt: time,
              deadline: time,
            }),
          },
          404: problemResponse,
          ...anyProblem,
        },
      },
    },
    async (request) => {
      const { params, clientGone } = request
      const job = await reads.next(request, () => orUnavailable(findJob(params.requestId, clientGone)))
      if (job === undefined) throw new ApiError('job_not_found')
      const [state, paused] = await orUnavailable(Promise.all([job.getState(), queue.isPaused()]))
      const { enqueuedAt, deadline } = job.data
      return {
        jobId: String(job.id),
        page: pageOf(job),
        state: state === 'prioritized' ? 'in line' : state,
        paused,
        enqueuedAt: new Date(enqueuedAt).toISOString(),
        deadline: new Date(deadline).toISOString(),
      }
    },
  )
}

/** Must be registered after the authentication of operators. */
export const operatorApiPlugin: OperatorRoutes = async (app, options) => {
  recordRefusals(app, options.audit)
  await app.register(docsPlugin, operatorDocs)
  app.addHook('onRoute', ({ schema, config: { role = 'viewer' } = {} }) => {
    if (schema === undefined) return
    const { description, response } = schema
    const said = [description, `For the role ${role}${role === 'admin' ? '.' : ', or a higher one.'}`]
    Object.assign(schema, {
      description: said.filter((each) => each !== undefined).join(' '),
      security: [{ operator: [] }],
      'x-role': role,
      response: { ...Object(response), 401: problemResponse, 429: limitProblem },
    })
  })
  await app.register(accountStateRoutes, options)
  await app.register(accountExportRoutes, options)
  await app.register(accountChangeRoutes, options)
  await app.register(blockRoutes, options)
  await app.register(jobRoutes, options)
}
