// Closed-loop load by autocannon: a fixed number of callers, each sending its next request when the last was answered.
import autocannon from 'autocannon'
import { outcomeOf, Tally, TIMEOUT_MS } from '../measure/tally.ts'

export interface ClosedLoop {
  /** The connections are spread over them. */
  urls: readonly string[]
  connections: number
  durationS: number
  /** What the caller with this number sends, over and over. */
  requests(caller: number): autocannon.Request[]
}

export interface ClosedLoopResult {
  tally: Tally
  seconds: number
}

/** Requests that are still open when the time is over are not counted, neither as answered nor as lost. */
export async function closedLoop({ urls, connections, durationS, requests }: ClosedLoop): Promise<ClosedLoopResult> {
  const tally = new Tally()
  const startMs = performance.now()
  const second = () => Math.floor((performance.now() - startMs) / 1_000)
  let caller = 0

  function attack(url: string, share: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const run = autocannon(
        {
          url,
          connections: share,
          duration: durationS,
          timeout: TIMEOUT_MS / 1_000,
          headers: { 'content-type': 'application/json' },
          setupClient: (client) => client.setRequests(requests(caller++)),
        },
        (error) => (error ? reject(error) : resolve()),
      )
      run.on('response', (_client, status, _bytes, ms) => tally.record(outcomeOf(status), ms, second()))
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
