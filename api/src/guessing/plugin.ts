/** The hooks of a login: counted before anything is done for it, and settled when it is answered. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { accountOfEmail } from '../limits/account-name.js'
import { sendLimitHeaders } from '../limits/limit.js'
import { deviceTokenOf } from './device-token.js'
import type { Guessing, LetInAttempt } from './guessing.js'

export const guessingPlugin = fp(
  async (app: FastifyInstance, { guessing }: { guessing: Guessing }) => {
    app.decorateRequest('login')

    app.decorate('letLoginIn', async (request, reply) => {
      const { headers, ip, clientGone } = request
      const answer = headers['spillway-challenge']
      request.login = await guessing.letIn(
        {
          account: accountOfEmail(fieldOf(request, 'email')),
          deviceToken: deviceTokenOf(headers),
          challengeAnswer: typeof answer === 'string' ? answer : '',
          client: { address: ip, gone: clientGone, whilePaused: (wait) => whilePaused(request, wait) },
        },
        (max, count) => sendLimitHeaders(reply, max, count),
      )
    })

    app.decorate('settleLogin', async (request, reply) => {
      const { login, jobId, clientGone } = request
      if (login === undefined) return
      const hasFailed = reply.statusCode >= 500 && !clientGone.aborted
      if (jobId === undefined || hasFailed) login.takeBack()
      else if (reply.statusCode === 401) guessing.failedBy(fieldOf(request, 'password'), login.attempt)
    })
  },
  { name: 'guessing' },
)

/** Awaits what is not this gateway's own work. */
async function whilePaused<T>({ work }: FastifyRequest, wait: () => Promise<T>): Promise<T> {
  work?.pause()
  try {
    return await wait()
  } finally {
    work?.resume()
  }
}

/** A field of a body that was validated. */
function fieldOf({ body }: FastifyRequest, name: string): string {
  const field = typeof body === 'object' && body !== null ? Object.getOwnPropertyDescriptor(body, name)?.value : ''
  return typeof field === 'string' ? field : ''
}

declare module 'fastify' {
  interface FastifyInstance {
    /** `preHandler` hook that counts a login, after validation, and refuses it. */
    letLoginIn(request: FastifyRequest, reply: FastifyReply): Promise<void>
    /**
     * `onSend` hook of the same: unlike `onResponse`, it is also called for clients that are gone. An attempt whose job was cancelled in
     * time is taken back where that is done, in waiting/hold.ts.
     */
    settleLogin(request: FastifyRequest, reply: FastifyReply): Promise<void>
  }
  interface FastifyRequest {
    /** A login that was let in. */
    login?: LetInAttempt
  }
}
