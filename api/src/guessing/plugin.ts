/** The hooks of a login: counted before any work on it, and settled with its answer. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { accountOfEmail } from '../limits/account-name.js'
import type { CountedAttempt, CountedTogether } from '../limits/address-attempts.js'
import { sendLimitHeaders } from '../limits/limit.js'
import { type DeviceTokens, deviceTokenOf } from './device-token.js'
import type { Guessing, LetInAttempt } from './guessing.js'

export const guessingPlugin = fp(
  async (app: FastifyInstance, { guessing, devices }: { guessing: Guessing; devices: DeviceTokens }) => {
    app.decorateRequest('login')
    app.decorateRequest('ofAddress')
    app.decorateRequest('isUncounted')

    async function countForAddress(request: FastifyRequest, reply: FastifyReply) {
      request.ofAddress ??= await app.addressAttempts.begin(request.ip, reply)
      return request.ofAddress
    }

    function countTogether(request: FastifyRequest, reply: FastifyReply): CountedTogether | undefined {
      if (request.ofAddress !== undefined) return undefined
      request.isUncounted = false
      const together = app.addressAttempts.beginTogether(request.ip, reply)
      const counted = (answer: unknown) => {
        request.ofAddress = together.counted(answer)
        return request.ofAddress
      }
      return { ...together, counted }
    }

    /** Counts a request that its body makes invalid as a login. Throws `too_many_requests`. */
    async function countInvalid(request: FastifyRequest, reply: FastifyReply): Promise<void> {
      if (request.isUncounted !== true) return
      request.isUncounted = false
      await app.addressAttempts.count(request.ip, reply)
    }

    app.decorate('countLogin', async (request, reply) => {
      // Whether it is known to this account shows in the body.
      const isOfDevice = devices.recognize(deviceTokenOf(request.headers)) !== undefined
      if (isOfDevice) return
      if (!guessing.isTogether) return void (await countForAddress(request, reply))
      app.addressAttempts.refuseRemembered(request.ip, reply)
      request.isUncounted = true
    })

    app.decorate('letLoginIn', async (request, reply) => {
      const { headers, ip, clientGone } = request
      if (request.validationError !== undefined) {
        await countInvalid(request, reply)
        throw request.validationError
      }
      const answer = headers['spillway-challenge']
      request.login = await guessing.letIn(
        {
          account: accountOfEmail(fieldOf(request, 'email')),
          deviceToken: deviceTokenOf(headers),
          challengeAnswer: typeof answer === 'string' ? answer : '',
          countForAddress: () => countForAddress(request, reply),
          countTogether: () => countTogether(request, reply),
          client: { address: ip, gone: clientGone, whilePaused: (wait) => whilePaused(request, wait) },
        },
        (max, count) => sendLimitHeaders(reply, max, count),
      )
    })

    app.decorate('settleLogin', async (request, reply) => {
      const { login, ofAddress, jobId, clientGone } = request
      if (login === undefined) {
        // What it says is sent with the next request.
        if (reply.statusCode < 500) await countInvalid(request, reply).catch(() => undefined)
        if (ofAddress !== undefined) app.addressAttempts.end(ofAddress, reply.statusCode < 500)
        return
      }
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
    /**
     * `onRequest` hook that counts a login for its address, unless a known device makes it. Where a login is counted with its account, the
     * hook only refuses from memory.
     */
    countLogin(request: FastifyRequest, reply: FastifyReply): Promise<void>
    /** `preHandler` hook that counts a login, and refuses it. Needs `attachValidation`: an invalid one counts for its address. */
    letLoginIn(request: FastifyRequest, reply: FastifyReply): Promise<void>
    /**
     * `onSend` hook of the same: unlike `onResponse`, it is also called for clients that are gone. An attempt whose job was cancelled in
     * time is taken back where that is done, in operations/conductor.ts.
     */
    settleLogin(request: FastifyRequest, reply: FastifyReply): Promise<void>
  }
  interface FastifyRequest {
    /** A login that was let in. */
    login?: LetInAttempt
    /** A login that counts for its address. */
    ofAddress?: CountedAttempt
    /** A login that is yet to be counted for its address: its body is not known to be valid. */
    isUncounted?: boolean
  }
}
