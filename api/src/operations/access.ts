/** Access to operations: authentication, and the identity of the caller. */
import type {
  FastifyInstance,
  FastifyRequest,
  onRequestAsyncHookHandler,
  onSendAsyncHookHandler,
  preHandlerAsyncHookHandler,
} from 'fastify'
import { ApiError } from '../plugins/errors.js'
import type { LetInAttempt } from '../plugins/guessing/guessing.js'
import { requireAccessToken } from '../sessions/access-token.js'

export interface Access<Caller> {
  /** The hooks that authenticate and limit requests. */
  hooks(app: FastifyInstance): {
    onRequest: onRequestAsyncHookHandler[]
    preHandler: preHandlerAsyncHookHandler[]
    onSend?: onSendAsyncHookHandler[]
    /** Whether `preHandler` hooks get invalid requests, and refuse them [false]. */
    attachValidation?: boolean
  }
  /** The security requirement in OpenAPI. */
  security?: readonly { readonly [scheme: string]: readonly string[] }[]
  callerOf(request: FastifyRequest): Caller
}

export const anyone: Access<undefined> = {
  hooks: ({ limitNetwork, limitAccount }) => ({ onRequest: [limitNetwork], preHandler: [limitAccount] }),
  callerOf: () => undefined,
}

/** Anyone, where registration is open. Otherwise everyone is refused before any work. */
export const newcomers: Access<undefined> = {
  ...anyone,
  hooks(app) {
    const { onRequest, preHandler } = anyone.hooks(app)
    if (!app.isRegistrationOpen) return { onRequest: [refuseRegistration], preHandler }
    return { onRequest: app.sendsMail ? [...onRequest, app.limitMailNetwork] : onRequest, preHandler }
  },
}

async function refuseRegistration(): Promise<void> {
  throw new ApiError('registration_closed')
}

/** Refuses before any work where no mail is sent. */
export function requireMail({ sendsMail }: FastifyInstance): onRequestAsyncHookHandler {
  return async () => {
    if (!sendsMail) throw new ApiError('mail_off')
  }
}

/** Anyone with the token of a mail. */
export const mailed: Access<undefined> = {
  hooks: (app) => ({ onRequest: [requireMail(app), app.limitNetwork], preHandler: [] }),
  callerOf: () => undefined,
}

/** Anyone who may try a password: guessing is held back. */
export const guesser: Access<LetInAttempt | undefined> = {
  hooks: ({ refuseLoginOverLimit, letLoginIn, endLoginAttempt }) => ({
    onRequest: [refuseLoginOverLimit],
    preHandler: [letLoginIn],
    onSend: [endLoginAttempt],
    attachValidation: true,
  }),
  callerOf: ({ login }) => login,
}

export interface SignedIn {
  userId: string
  sessionId: string
}

export const signedIn: Access<SignedIn> = {
  hooks: ({ limitNetwork, limitAccount }) => ({
    onRequest: [requireAccessToken, limitNetwork],
    preHandler: [limitAccount],
  }),
  security: [{ accessToken: [] }],
  callerOf: ({ user: { sub, sid } }) => ({ userId: sub, sessionId: sid }),
}

/** A signed-in user who has a mail sent. */
export const signedInWithMail: Access<SignedIn> = {
  ...signedIn,
  hooks(app) {
    const { onRequest, preHandler } = signedIn.hooks(app)
    return { onRequest: [requireMail(app), ...onRequest, app.limitMailNetwork], preHandler }
  },
}
