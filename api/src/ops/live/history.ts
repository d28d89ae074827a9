/**
 * The history of the queue for the live page: the last minutes, sampled once a second from the load that admission reads anyway, so it
 * costs Redis nothing.
 */
import type { PasswordClient } from '@spillway/client/queue-client'

const SAMPLE_MS = 1_000
/** Five minutes. */
const KEPT = 300
/** The number of samples over which a rate is computed: jobs end in bursts. */
const RATE_SAMPLES = 5

/** A value for each second, oldest first; null when Redis did not answer. */
export interface LiveHistory {
  waiting: (number | null)[]
  finishedPerSecond: (number | null)[]
  capacityPerSecond: (number | null)[]
}

interface Sample {
  atMs: number
  known: boolean
  finished: number
  waiting: number
  capacityPerSecond: number
  finishedPerSecond: number | undefined
}

/** Samples until close() is called. */
export function startLiveHistory(passwords: Pick<PasswordClient, 'load' | 'finishedJobs'>): {
  read(): LiveHistory
  close(): void
} {
  const samples: Sample[] = []

  function sample(): void {
    const { known, waiting, deferred, jobsPerSecond } = passwords.load()
    const finished = passwords.finishedJobs()
    const atMs = performance.now()
    const before = samples.at(-RATE_SAMPLES) ?? samples[0]
    const finishedPerSecond = before && ((finished - before.finished) * 1_000) / (atMs - before.atMs)
    samples.push({
      atMs,
      known,
      finished,
      waiting: waiting + deferred,
      capacityPerSecond: jobsPerSecond,
      finishedPerSecond,
    })
    if (samples.length > KEPT) samples.shift()
  }

  function column(read: (sample: Sample) => number | undefined): (number | null)[] {
    return samples.map((each) => {
      const value = each.known ? read(each) : undefined
      return value === undefined ? null : Math.round(value * 10) / 10
    })
  }

  sample()
  const timer = setInterval(sample, SAMPLE_MS)
  timer.unref()

  return {
    read: () => ({
      waiting: column(({ waiting }) => waiting),
      finishedPerSecond: column(({ finishedPerSecond }) => finishedPerSecond),
      capacityPerSecond: column(({ capacityPerSecond }) => capacityPerSecond),
    }),
    close: () => clearInterval(timer),
  }
}
