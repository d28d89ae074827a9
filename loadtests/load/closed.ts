// Closed-loop load by autocannon: a fixed number of callers, each sending its next request when the last was answered.
import { setTimeout as sleep } from 'node:timers/promises'
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

/** The callers do not all arrive in the same millisecond, but in so many groups over this time. */
const ARRIVAL_MS = 1_000
const ARRIVAL_GROUPS = 20

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

  function attack(url: string, share: number, forS: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const run = autocannon(
        {
          url,
          connections: share,
          duration: forS,
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

  /** Callers arrive together, at one of the addresses. */
  async function arrive(group: number, callersInGroup: number): Promise<void> {
    const afterMs = (group / groups) * Math.min(ARRIVAL_MS, (durationS * 1_000) / 4)
    await sleep(afterMs)
    await attack(urls[group % urls.length] ?? '', callersInGroup, durationS - afterMs / 1_000)
  }

  const groups = Math.min(connections, Math.max(ARRIVAL_GROUPS, urls.length))
  const sizes = Array.from({ length: groups }, (_, group) => Math.ceil((connections - group) / groups))
  await Promise.all(sizes.map((size, group) => arrive(group, size)))
  return { tally, seconds: (performance.now() - startMs) / 1_000 }
}
