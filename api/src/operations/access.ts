/** Access to operations: authentication, and the identity of the caller. */
import type { FastifyInstance, FastifyRequest, onRequestAsyncHookHandler, preHandlerAsyncHookHandler } from 'fastify'
import { schemaOf } from '../schemas/schema.js'
import { requireAccessToken } from '../sessions/access-token.js'

export interface Access<Caller> {
  /** The hooks that authenticate and limit requests. */
  hooks(app: FastifyInstance): { onRequest: onRequestAsyncHookHandler[]; preHandler: preHandlerAsyncHookHandler[] }
  /** The security requirement in OpenAPI. */
  security?: readonly { readonly [scheme: string]: readonly string[] }[]
  callerOf(request: FastifyRequest): Caller
}

export const anyone: Access<undefined> = {
  hooks: ({ limitAddress, limitAccount }) => ({ onRequest: [limitAddress], preHandler: [limitAccount] }),
  callerOf: () => undefined,
}

export interface SignedIn {
  userId: string
  sessionId: string
}

export const signedIn: Access<SignedIn> = {
  hooks: ({ limitAddress, limitAccount }) => ({
    onRequest: [requireAccessToken, limitAddress],
    preHandler: [limitAccount],
  }),
  security: [{ accessToken: [] }],
  callerOf: ({ user: { sub, sid } }) => ({ userId: sub, sessionId: sid }),
}

/** The ticket contents of operations of a signed-in user: the session, and the credential that is verified. */
export const SignedInContents = schemaOf({
  type: 'object',
  properties: {
    userId: { type: 'string' },
    sessionId: { type: 'string' },
    credentialVersion: { type: 'integer' },
  },
  required: ['userId', 'sessionId', 'credentialVersion'],
  additionalProperties: false,
})
