/** The API for operators on the ops port: accounts, blocked networks, and its description. */
import type { FastifyPluginAsyncJsonSchemaToTs } from '@fastify/type-provider-json-schema-to-ts'
import { listOf } from '@spillway/common/settings'
import { objectOf } from '@spillway/queue/wire/object-schema'
import { AddressRanges, rangeOf } from '../http/client-network.js'
import { docsPlugin, operatorDocs } from '../http/docs.js'
import { invalid, orUnknown } from '../http/errors.js'
import { NetworkField } from '../schemas/credentials.js'
import { anyProblem, limitProblem, problemResponse } from '../schemas/responses.js'
import { accountChangeRoutes } from './account-changes.js'
import { accountExportRoutes } from './account-export.js'
import { accountStateRoutes } from './account-state.js'
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

const blockRoutes: FastifyPluginAsyncJsonSchemaToTs<{ Options: OperatorDeps }> = async (app, options) => {
  const { blocks, audit, database, config } = options
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
    async () => ({ blocks: await blocks.list(database) }),
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
          'All gateways refuse its requests within a second. An IPv6 address means its /64. A network with a proxy of TRUST_PROXY is refused.',
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

/** Must be registered after the authentication of operators. */
export const operatorApiPlugin: FastifyPluginAsyncJsonSchemaToTs<{ Options: OperatorDeps }> = async (app, options) => {
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
  await app.register(accountExportRoutes, options)
  await app.register(accountChangeRoutes, options)
  await app.register(blockRoutes, options)
}
