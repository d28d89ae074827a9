// Callers as a good client behaves: one connection each, sent back with Retry-After they come back then, given a ticket
// they redeem it, and with their answer they start over. autocannon knows no Retry-After and would hammer.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Answer, type Credentials, createApiClient, redeemUntilAnswered } from '@spillway/local/testing/api-client'
import { outcomeOf, Tally } from '../measure/tally.ts'

export interface PatientLoad {
  url: string
  callers: number
  /** They arrive one after the other over this time. */
  rampMs: number
  /** After this nobody starts anything new; what is open is waited for. */
  durationMs: number
  body(caller: number): Credentials
}

export interface PatientResult {
  /** Every request, each with what became of it. */
  tally: Tally
  /** Requests open at a time, at the most. */
  mostOpen: number
  /** Until the last answer was in. */
  seconds: number
}

export async function patientLoad({ url, callers, rampMs, durationMs, body }: PatientLoad): Promise<PatientResult> {
  const tally = new Tally()
  const client = createApiClient(url)
  const startMs = performance.now()
  const elapsedMs = () => performance.now() - startMs
  let open = 0
  let mostOpen = 0

  async function timed(request: () => Promise<Answer>): Promise<Answer> {
    const sentMs = elapsedMs()
    mostOpen = Math.max(mostOpen, ++open)
    const answer = await request()
    open--
    tally.record(outcomeOf(answer), elapsedMs() - sentMs, Math.floor(elapsedMs() / 1_000))
    return answer
  }

  async function call(caller: number): Promise<void> {
    await sleep((caller / callers) * rampMs)
    while (elapsedMs() < durationMs) {
      const answer = await redeemUntilAnswered(await timed(() => client.login(body(caller))), {
        redeem: (ticket) => timed(() => client.redeem(ticket)),
        endMs: startMs + durationMs,
      })
      const outcome = outcomeOf(answer)
      if (outcome === 'busy' || outcome === 'error') {
        await sleep(Math.min(answer.retryAfterMs, Math.max(durationMs - elapsedMs(), 0)))
      }
    }
  }

  await Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)))
  client.close()
  return { tally, mostOpen, seconds: elapsedMs() / 1_000 }
}
