/** Answers 503 to refused requests on Node's own response, before Fastify handles them: refusals must be cheap. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { answerHeaders } from '../problems/answer-headers.js'
import { ApiError } from '../problems/errors.js'
import { problemOf, problemType } from '../problems/plugin.js'
import { createRefusalPace } from './refusal-pace.js'

/** Refusals that are due within this time are answered in one batch, in milliseconds. */
const BATCH_MS = 10
/** The most refusals that wait. Beyond it the oldest is answered at once: clients that pipeline requests would fill the memory. */
const MOST_WAITING = 10_000

export const busy = new ApiError('busy', { reason: 'gateway_overloaded' })
const body = JSON.stringify(problemOf(busy))
const headers = { ...answerHeaders, ...problemType, 'content-length': body.length }

interface Refused {
  response: ServerResponse
  dueMs: number
  retryAfterS: number
  /** Whether the body is too large to be read and discarded. */
  isTooLarge: boolean
}

export type AnswerBusy = (request: IncomingMessage, response: ServerResponse, retryAfterS: number) => void

export interface BusyAnswersOptions {
  bodyLimitBytes: number
  isClosing(): boolean
  /** Recent throughput, in requests a second. */
  perSecond(): number
}

/** The connection stays open for a retry, unless the gateway closes or the body is too large to be discarded. */
export function createBusyAnswers(options: BusyAnswersOptions): AnswerBusy {
  const refused: Refused[] = []
  const nextDueMs = createRefusalPace(options.perSecond)

  function answer({ response, retryAfterS, isTooLarge }: Refused): void {
    response.writeHead(busy.status, {
      ...headers,
      'retry-after': String(retryAfterS),
      ...(isTooLarge || options.isClosing() ? { connection: 'close' } : {}),
    })
    response.end(body)
  }

  function answerDue(): void {
    const nowMs = performance.now()
    const later = refused.findIndex(({ dueMs }) => dueMs > nowMs + BATCH_MS)
    for (const each of refused.splice(0, later < 0 ? refused.length : later)) answer(each)
    const [next] = refused
    if (next !== undefined) setTimeout(answerDue, next.dueMs - nowMs)
  }

  return ({ headers }, response, retryAfterS) => {
    const isTooLarge =
      headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > options.bodyLimitBytes
    const nowMs = performance.now()
    const dueMs = nextDueMs(nowMs)
    refused.push({ response, dueMs, retryAfterS, isTooLarge })
    if (refused.length > MOST_WAITING) for (const oldest of refused.splice(0, 1)) answer(oldest)
    if (refused.length === 1) setTimeout(answerDue, dueMs - nowMs)
  }
}
