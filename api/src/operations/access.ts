/** Who may call an operation, and what the operation learns of its caller. */
import type { FastifyRequest, onRequestAsyncHookHandler } from 'fastify'
import { schemaOf } from '../schemas/schema.js'
import { requireAccessToken } from '../sessions/access-token.js'

export interface Access<Caller> {
  /** Run before anything else is made of the request. */
  hooks: onRequestAsyncHookHandler[]
  /** As OpenAPI has it. */
  security?: readonly { readonly [scheme: string]: readonly string[] }[]
  callerOf(request: FastifyRequest): Caller
}

export const anyone: Access<undefined> = { hooks: [], callerOf: () => undefined }

export interface SignedIn {
  userId: string
  sessionId: string
}

export const signedIn: Access<SignedIn> = {
  hooks: [requireAccessToken],
  security: [{ accessToken: [] }],
  callerOf: ({ user: { sub, sid } }) => ({ userId: sub, sessionId: sid }),
}

/** What tickets of a signed-in user's operations carry: the session, and the credential that was verified. */
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
