// How a person of a load test comes back, with a ticket or after a refusal. The code of `@spillway/client/browser` decides, as in pages.
import { setTimeout as sleep } from 'node:timers/promises'
import { isFar, pauseAfter, untilNear } from '@spillway/client/browser/line'
import type { ApiAnswer } from '@spillway/local/rig/api-client'

export interface WayBack {
  /** Of the gateway. */
  url: string
  headers?: Record<string, string>
  /** Rejects with its reason. */
  signal: AbortSignal
}

/** Waits as long as the answer asks, and with a ticket whose turn is far until the line has come near. */
export async function comeBack(answer: ApiAnswer, { url, headers = {}, signal }: WayBack, failures = 0): Promise<void> {
  const { status, body } = answer
  const retryAfterMs = 'retry-after' in answer.headers ? answer.retryAfterMs : undefined
  const pause = (ms: number) => sleep(ms, undefined, { signal })
  const { number, line, eta } = body
  const pauseMs = pauseAfter({ status, retryAfterMs }, failures)
  const etaAt = eta === undefined ? undefined : Date.now() + eta * 1_000
  const watches = status === 202 && isFar({ number, etaAt }, pauseMs)
  await pause(pauseMs)
  if (watches) await untilNear({ number, line }, { url: `${url}/v1/line`, headers }, signal, pause)
}
