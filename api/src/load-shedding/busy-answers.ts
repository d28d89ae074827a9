/** Refusals of requests that nothing was made of: written to Node's own response, and all of them alike. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { answerHeaders } from '../problems/answer-headers.js'
import { ApiError } from '../problems/errors.js'
import { problemOf, problemType } from '../problems/plugin.js'

/**
 * A refusal is answered so much later, in milliseconds: whoever asks again as soon as it is answered would otherwise be refused
 * ten thousand times a second, and the gateway do nothing else.
 */
const PAUSE_MS = 500
/** Refusals that are due within this are answered together, in milliseconds. */
const TOGETHER_MS = 10

export const busy = new ApiError('busy', { reason: 'gateway_overloaded' })
const body = JSON.stringify(problemOf(busy))
const headers = { ...answerHeaders, ...problemType, 'content-length': body.length }

interface Refused {
  response: ServerResponse
  dueMs: number
  retryAfterS: number
  /** Whether more of a body comes than is read for nothing. */
  isTooLarge: boolean
}

export type AnswerBusy = (request: IncomingMessage, response: ServerResponse, retryAfterS: number) => void

/** The connection stays open for the next try, unless this gateway closes or the body is too large to be skipped. */
export function createBusyAnswers(options: { bodyLimitBytes: number; isClosing(): boolean }): AnswerBusy {
  const refused: Refused[] = []

  function answerDue(): void {
    const nowMs = performance.now()
    const later = refused.findIndex(({ dueMs }) => dueMs > nowMs + TOGETHER_MS)
    for (const { response, retryAfterS, isTooLarge } of refused.splice(0, later < 0 ? refused.length : later)) {
      response.writeHead(busy.status, {
        ...headers,
        'retry-after': String(retryAfterS),
        ...(isTooLarge || options.isClosing() ? { connection: 'close' } : {}),
      })
      response.end(body)
    }
    const [next] = refused
    if (next !== undefined) setTimeout(answerDue, next.dueMs - nowMs)
  }

  return ({ headers }, response, retryAfterS) => {
    const isTooLarge =
      headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > options.bodyLimitBytes
    refused.push({ response, dueMs: performance.now() + PAUSE_MS, retryAfterS, isTooLarge })
    if (refused.length === 1) setTimeout(answerDue, PAUSE_MS)
  }
}
