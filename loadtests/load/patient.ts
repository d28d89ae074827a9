// Callers as a good client behaves: one connection each, sent back with Retry-After they come back then, given a ticket they redeem it,
// and with their answer they start over. autocannon knows no Retry-After and would hammer.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Answer, type Credentials, createApiClient, redeemUntilAnswered } from '@spillway/local/rig/api-client'
import { outcomeOf, Tally } from '../measure/tally.ts'
import type { ClosedLoopResult } from './closed.ts'

export interface PatientLoad {
  url: string
  callers: number
  /** The callers arrive one after the other over this time. */
  arriveMs: number
  /** After this nobody starts anything new; what is open is waited for, and counted. */
  durationMs: number
  credentials(caller: number): Credentials
}

/** Counts every request, a redemption with the time since the login that gave the ticket. */
export async function patientLoad(load: PatientLoad): Promise<ClosedLoopResult> {
  const { url, callers, arriveMs, durationMs, credentials } = load
  const tally = new Tally()
  const client = createApiClient(url)
  const startMs = performance.now()
  const elapsedMs = () => performance.now() - startMs

  async function counted(request: Promise<Answer>, sinceMs: number): Promise<Answer> {
    const answer = await request
    tally.record(outcomeOf(answer), elapsedMs() - sinceMs, Math.floor(elapsedMs() / 1_000))
    return answer
  }

  async function call(caller: number): Promise<void> {
    await sleep((caller / callers) * arriveMs)
    while (elapsedMs() < durationMs) {
      const sentMs = elapsedMs()
      const answer = await redeemUntilAnswered(await counted(client.login(credentials(caller)), sentMs), {
        redeem: (ticket) => counted(client.redeem(ticket), sentMs),
        endMs: startMs + durationMs,
      })
      if (['busy', 'error'].includes(outcomeOf(answer))) {
        await sleep(Math.min(answer.retryAfterMs, Math.max(durationMs - elapsedMs(), 0)))
      }
    }
  }

  await Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)))
  client.close()
  return { tally, seconds: elapsedMs() / 1_000 }
}
