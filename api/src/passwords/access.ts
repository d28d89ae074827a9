/** Hooks that refuse callers of an endpoint before any work. */
import type { FastifyRequest, onRequestAsyncHookHandler } from 'fastify'
import { ApiError } from '../http/errors.js'
import type { Post } from '../mail/post.js'
import { requireAccessToken } from '../sessions/access-token.js'
import type { SessionOfUser } from '../sessions/sessions.js'

/** Refuses if no mail is sent. */
export function requireMail({ post }: { post: Post | undefined }): onRequestAsyncHookHandler {
  return async () => {
    if (post === undefined) throw new ApiError('mail_off')
  }
}

/** Refuses if registration is closed. */
export function requireOpenRegistration(deps: { isRegistrationOpen: boolean }): onRequestAsyncHookHandler {
  return async () => {
    if (!deps.isRegistrationOpen) throw new ApiError('registration_closed')
  }
}

/** The route options of endpoints for signed-in users. */
export const signedIn = {
  onRequest: () => [requireAccessToken],
  security: [{ accessToken: [] }],
} as const

/** The user of a request that {@link requireAccessToken} has let in. */
export function signedInUser({ user: { sub, sid } }: FastifyRequest): SessionOfUser {
  return { userId: sub, sessionId: sid }
}
