/**
 * Authenticates services. A service sends one of its keys as a bearer token (RFC 6750), or with its
 * name by HTTP Basic, like clients of OAuth (RFC 6749, 2.3.1). To rotate a key, add a second key of
 * the same name to the list, give it to the service, then remove the first.
 */
import { timingSafeEqual } from 'node:crypto'
import { parseKeyList } from '@spillway/queue/wire/seal'
import type { onRequestAsyncHookHandler } from 'fastify'
import { ApiError } from '../http/errors.js'

function credentialsOf(authorization: string): { name?: string; key: string } {
  const [, bearer] = /^Bearer +([A-Za-z0-9+/_-]+=*)$/i.exec(authorization) ?? []
  if (bearer !== undefined) return { key: bearer }
  const [, basic = ''] = /^Basic +([A-Za-z0-9+/]+=*)$/i.exec(authorization) ?? []
  // The RFC requires clients to encode both parts, but not all do. No part contains a percent sign.
  const [, name = '', key = ''] =
    /^([\w-]+):([A-Za-z0-9+/_=%-]+)$/.exec(Buffer.from(basic, 'base64').toString('latin1')) ?? []
  return { name, key: key.replace(/%2b/gi, '+').replace(/%2f/gi, '/').replace(/%3d/gi, '=') }
}

/** A hook that names the service of a request. Throws `invalid_service_key`. */
export function requireKeyOf(list: string): onRequestAsyncHookHandler {
  const known = parseKeyList('SERVICE_KEYS', list)
  return async (request) => {
    const { name, key } = credentialsOf(request.headers.authorization ?? '')
    const given = Buffer.from(key, 'base64')
    // Compares with every key, each in constant time.
    const fitting = known.filter(({ key }) => given.length === key.length && timingSafeEqual(given, key))
    const service = fitting[0]?.name
    if (service === undefined || (name !== undefined && name !== service)) throw new ApiError('invalid_service_key')
    request.service = service
  }
}
