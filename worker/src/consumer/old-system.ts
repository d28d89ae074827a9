/**
 * The old system verifies passwords of addresses that are not here yet, and of accounts that came without a hash. It is trusted with these
 * alone. While it is slow or down, no login waits long: see the circuit breaker.
 */
import { createHmac } from 'node:crypto'
import limitConcurrency from 'p-limit'
import type { OldSystem } from '../hashing/perform.js'

export interface OldSystemOptions {
  url: string
  /** Of the signature. */
  key: Buffer
  timeoutMs: number
  /** Questions at a time. */
  concurrency: number
  /** Called with the outcome of each question. */
  answered?(outcome: 'yes' | 'no' | 'unavailable'): void
}

/** After so many failures one after the other nothing is asked for a while, then one question at a time until one is answered. */
const FAILURES_MAX = 5
const OPEN_MS = 10_000
/** A longer answer is refused. */
const ANSWER_MAX_BYTES = 4_096

export function createOldSystem(options: OldSystemOptions, now = () => performance.now()): OldSystem {
  const { timeoutMs, answered } = options
  const limit = limitConcurrency(options.concurrency)
  let failures = 0
  let closedUntil = 0
  let isProbing = false

  /** Whether the circuit lets a question through. */
  function admits(): boolean {
    if (failures < FAILURES_MAX) return true
    if (isProbing || now() < closedUntil) return false
    isProbing = true
    return true
  }

  async function ask(email: string, password: string): Promise<boolean | undefined> {
    const signal = AbortSignal.timeout(timeoutMs)
    try {
      // A place among the others counts as a part of the time.
      return await limit(() => (signal.aborted ? undefined : answerOf(options, { email, password }, signal)))
    } catch {
      return undefined
    }
  }

  return {
    async verifies(email, password) {
      if (!admits()) {
        answered?.('unavailable')
        return false
      }
      const answer = await ask(email, password)
      isProbing = false
      if (answer === undefined) {
        failures++
        if (failures >= FAILURES_MAX) closedUntil = now() + OPEN_MS
      } else {
        failures = 0
      }
      answered?.(answer === undefined ? 'unavailable' : answer ? 'yes' : 'no')
      return answer === true
    },
  }
}

/** Undefined for every answer but 200 with `{"verified": true}` or `false`. */
async function answerOf(
  { url, key }: OldSystemOptions,
  question: { email: string; password: string },
  signal: AbortSignal,
): Promise<boolean | undefined> {
  const body = JSON.stringify(question)
  const timestamp = String(Math.floor(Date.now() / 1_000))
  const signature = createHmac('sha256', key).update(`${timestamp}.${body}`).digest('hex')
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'spillway-timestamp': timestamp,
      'spillway-signature': `v1=${signature}`,
    },
    body,
    redirect: 'error',
    signal,
  })
  const text = await textOf(response)
  if (response.status !== 200 || text === undefined) return undefined
  const answer: unknown = JSON.parse(text)
  if (typeof answer !== 'object' || answer === null || !('verified' in answer)) return undefined
  return typeof answer.verified === 'boolean' ? answer.verified : undefined
}

/** Undefined for a body that is too long. */
async function textOf(response: Response): Promise<string | undefined> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > ANSWER_MAX_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
