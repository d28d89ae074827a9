// Closed-loop load by autocannon: a fixed number of callers, each sending its next request when the last was answered.
import autocannon from 'autocannon'
import { outcomeOf, Tally, TIMEOUT_MS } from '../measure/tally.ts'
import type { Caller } from './requests.ts'

export interface ClosedLoop {
  /** The connections are spread over them. */
  urls: readonly string[]
  connections: number
  durationS: number
  caller: Caller
}

export interface ClosedLoopResult {
  tally: Tally
  seconds: number
}

/** Requests that are still open when the time is over are not counted, neither as answered nor as lost. */
export async function closedLoop({ urls, connections, durationS, caller }: ClosedLoop): Promise<ClosedLoopResult> {
  const tally = new Tally()
  const startMs = performance.now()
  const second = () => Math.floor((performance.now() - startMs) / 1_000)
  const waitedBefore = new WeakMap<autocannon.Client, number>()
  let callers = 0

  function attack(url: string, share: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const run = autocannon(
        {
          url,
          connections: share,
          duration: durationS,
          timeout: TIMEOUT_MS / 1_000,
          headers: { 'content-type': 'application/json' },
          setupClient: (client) => caller(client, callers++),
        },
        (error) => (error ? reject(error) : resolve()),
      )
      run.on('response', (client, status, _bytes, ms) => {
        const outcome = outcomeOf(status)
        const waitedMs = (waitedBefore.get(client) ?? 0) + ms
        // With a ticket the caller goes on waiting: the verdict it gets in the end took both waits.
        waitedBefore.set(client, outcome === 'ticket' ? waitedMs : 0)
        tally.record(outcome, waitedMs, second())
      })
      run.on('reqError', (error: Error) => {
        const timedOut = error.message === 'request timed out'
        tally.record(timedOut ? 'timeout' : 'error', timedOut ? TIMEOUT_MS : 0, second())
      })
    })
  }

  const share = Math.ceil(connections / urls.length)
  await Promise.all(urls.map((url) => attack(url, share)))
  return { tally, seconds: (performance.now() - startMs) / 1_000 }
}
