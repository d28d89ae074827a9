// A storm of logins on a started recipe: a hundred users who log in over and over, and what its other endpoints take meanwhile.
import { setTimeout as sleep } from 'node:timers/promises'
import { startLoop } from '@spillway/local/testing/open-loop'
import { neighbours } from './recipes.ts'
import type { StartedRecipe, User } from './start.ts'

/** Until all users have come, and the code is compiled. */
const WARM_UP_MS = 3_000
const SENT_AWAY_MS = 1_000
const PROBES_PER_SECOND = 25

export interface Storm {
  users: readonly User[]
  seconds: number
}

export interface Measured {
  /** Answered 200, and anything else, in the counted time. */
  loginsPerSecond: number
  failed: number
  /** Of the 99th of a hundred requests, from when each was due, in milliseconds. */
  p99Ms: Record<keyof typeof neighbours, number>
}

export async function measureStorm(recipe: StartedRecipe, { users, seconds }: Storm): Promise<Measured> {
  const counted = { succeeded: 0, failed: 0 }
  let isCounting = false
  let isOver = false
  const storm = users.map(async (user) => {
    while (!isOver) {
      const status = await recipe.login(user)
      if (isCounting) counted[status === 200 ? 'succeeded' : 'failed'] += 1
      // As people do who are sent away.
      if (status !== 200) await sleep(SENT_AWAY_MS)
    }
  })
  await sleep(WARM_UP_MS)
  const startMs = performance.now()
  isCounting = true
  const probes = { file: startProbe(recipe, neighbours.file), time: startProbe(recipe, neighbours.time) }
  await sleep(seconds * 1_000)
  isCounting = false
  const countedS = (performance.now() - startMs) / 1_000
  // The storm goes on until the last of them is answered.
  const [file, time] = await Promise.all([probes.file.stop(), probes.time.stop()])
  isOver = true
  await Promise.all(storm)
  return { loginsPerSecond: counted.succeeded / countedS, failed: counted.failed, p99Ms: { file, time } }
}

/** Asks at a steady rate, whatever the answers take. */
function startProbe(recipe: StartedRecipe, path: string) {
  const tookMs: number[] = []
  const loop = startLoop({
    rateAt: () => PROBES_PER_SECOND,
    async send(dueMs) {
      const status = await recipe.get(path)
      // What is not answered must not look quick.
      tookMs.push(status === 200 ? performance.now() - dueMs : Number.POSITIVE_INFINITY)
    },
  })
  return {
    async stop(): Promise<number> {
      await loop.stop()
      const sorted = tookMs.sort((a, b) => a - b)
      return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Number.NaN
    },
  }
}
