/** Answers 503 to refused requests on Node's own response, before Fastify handles them: refusals must be cheap. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createRefusalPace } from '@spillway/client/passwords/refusal-pace'
import { answerHeaders } from '../problems/answer-headers.js'
import { ApiError } from '../problems/errors.js'
import { problemOf, problemType } from '../problems/plugin.js'

/** What each refusal of an overloaded gateway waits, in milliseconds. */
const LEAST_DELAY_MS = 500

export const busy = new ApiError('busy', { reason: 'gateway_overloaded' })
const body = JSON.stringify(problemOf(busy))
const headers = { ...answerHeaders, ...problemType, 'content-length': body.length }

export type AnswerBusy = (request: IncomingMessage, response: ServerResponse, retryAfterS: number) => void

export interface BusyAnswersOptions {
  bodyLimitBytes: number
  isClosing(): boolean
  /** Recent throughput, in requests a second. */
  perSecond(): number
}

/** The connection stays open for a retry, unless the gateway closes or the body is too large to be discarded. */
export function createBusyAnswers({ bodyLimitBytes, isClosing, perSecond }: BusyAnswersOptions): AnswerBusy {
  const whenDue = createRefusalPace({ perSecond, leastDelayMs: LEAST_DELAY_MS, burstMs: 0 })

  return ({ headers: sent }, response, retryAfterS) => {
    const isTooLarge = sent['transfer-encoding'] !== undefined || Number(sent['content-length'] ?? 0) > bodyLimitBytes
    whenDue(() => {
      response.writeHead(busy.status, {
        ...headers,
        'retry-after': String(retryAfterS),
        ...(isTooLarge || isClosing() ? { connection: 'close' } : {}),
      })
      response.end(body)
    })
  }
}
