/**
 * Authentication of services: each has keys of its own, which it sends as a bearer token (RFC 6750). To rotate, put a second key of the
 * same name on the list, give it to the service, then drop the first.
 */
import { timingSafeEqual } from 'node:crypto'
import { parseKeyList } from '@spillway/client/protocol/key-list'
import type { FastifyInstance, onRequestAsyncHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import { ApiError } from '../problems/errors.js'

/** The variable that holds the list, for error messages. */
export const SERVICE_KEYS = 'SERVICE_KEYS'

/** Returns the name of the service that a text is a key of. Compares with every key, each in constant time. */
export function createKeyCheck(list: string): (text: string) => string | undefined {
  const keys = parseKeyList(SERVICE_KEYS, list)
  return (text) => {
    const given = Buffer.from(text, 'base64')
    return keys.filter(({ key }) => given.length === key.length && timingSafeEqual(given, key))[0]?.name
  }
}

export const serviceKeysPlugin = fp(
  async (app: FastifyInstance, { keys }: { keys: string }) => {
    const nameOf = createKeyCheck(keys)
    app.decorateRequest('service')
    app.decorate('requireServiceKey', async (request) => {
      const [, key = ''] = /^Bearer +([A-Za-z0-9+/_-]+=*)$/i.exec(request.headers.authorization ?? '') ?? []
      const service = nameOf(key)
      if (service === undefined) throw new ApiError('invalid_service_key')
      request.service = service
    })
  },
  { name: 'service-keys' },
)

declare module 'fastify' {
  interface FastifyInstance {
    /** `onRequest` hook that refuses requests without a key of a service. */
    requireServiceKey: onRequestAsyncHookHandler
  }
}
