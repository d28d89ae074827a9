// Callers as a good client behaves: one connection each, sent back with Retry-After they come back then, given a ticket
// they redeem it, and with their answer they start over. autocannon knows no Retry-After and would hammer.
import { setTimeout as sleep } from 'node:timers/promises'
import { Tally } from '../measure/tally.ts'
import { type Answer, createClient } from './client.ts'

export interface PatientLoad {
  url: string
  callers: number
  /** They arrive one after the other over this time. */
  rampMs: number
  /** After this nobody starts anything new; what is open is waited for. */
  durationMs: number
  body(caller: number): unknown
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
  const client = createClient(url)
  const startMs = performance.now()
  const elapsedMs = () => performance.now() - startMs
  let open = 0
  let mostOpen = 0

  async function timed(request: () => Promise<Answer>): Promise<Answer> {
    const sentMs = elapsedMs()
    mostOpen = Math.max(mostOpen, ++open)
    const answer = await request()
    open--
    tally.record(answer.outcome, elapsedMs() - sentMs, Math.floor(elapsedMs() / 1_000))
    return answer
  }

  async function call(caller: number): Promise<void> {
    await sleep((caller / callers) * rampMs)
    while (elapsedMs() < durationMs) {
      let answer = await timed(() => client.post('/v1/login', body(caller)))
      while (answer.outcome === 'ticket' && elapsedMs() < durationMs) {
        const { ticket } = JSON.parse(answer.body)
        await sleep(answer.retryAfterMs)
        answer = await timed(() => client.post('/v1/tickets/redeem', { ticket }))
      }
      if (answer.outcome === 'busy' || answer.outcome === 'error') {
        await sleep(Math.min(answer.retryAfterMs, Math.max(durationMs - elapsedMs(), 0)))
      }
    }
  }

  await Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)))
  client.close()
  return { tally, mostOpen, seconds: elapsedMs() / 1_000 }
}
