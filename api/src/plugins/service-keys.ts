/**
 * Authentication of services. Each has keys of its own, and sends one as a bearer token (RFC 6750),
 * or with its name as HTTP Basic, like clients of OAuth (RFC 6749, 2.3.1). To rotate, put a second
 * key of the same name on the list, give it to the service, then drop the first.
 */
import { timingSafeEqual } from 'node:crypto'
import { parseKeyList } from '@spillway/queue/wire/seal'
import type { FastifyInstance, onRequestAsyncHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError } from './errors.js'

function credentialsOf(authorization: string): { name?: string; key: string } {
  const [, bearer] = /^Bearer +([A-Za-z0-9+/_-]+=*)$/i.exec(authorization) ?? []
  if (bearer !== undefined) return { key: bearer }
  const [, basic = ''] = /^Basic +([A-Za-z0-9+/]+=*)$/i.exec(authorization) ?? []
  // Some clients encode both parts, as the RFC says, and some do not: no part holds a percent sign.
  const [, name = '', key = ''] =
    /^([\w-]+):([A-Za-z0-9+/_=%-]+)$/.exec(Buffer.from(basic, 'base64').toString('latin1')) ?? []
  return { name, key: key.replace(/%2b/gi, '+').replace(/%2f/gi, '/').replace(/%3d/gi, '=') }
}

export const serviceKeysPlugin = fp(
  async (app: FastifyInstance, { keys: list }: { keys: string }) => {
    const known = parseKeyList('SERVICE_KEYS', list)
    app.decorateRequest('service')
    app.decorate('requireServiceKey', async (request) => {
      const { name, key } = credentialsOf(request.headers.authorization ?? '')
      const given = Buffer.from(key, 'base64')
      // Compared with every key, each in constant time.
      const fitting = known.filter(({ key }) => given.length === key.length && timingSafeEqual(given, key))
      const service = fitting[0]?.name
      if (service === undefined || (name !== undefined && name !== service)) throw new ApiError('invalid_service_key')
      request.service = service
    })
  },
  { name: 'service-keys' },
)

declare module 'fastify' {
  interface FastifyInstance {
    requireServiceKey: onRequestAsyncHookHandler
  }
}
