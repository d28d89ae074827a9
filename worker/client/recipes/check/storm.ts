// Storms of logins on a started recipe, from this clone.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from '@spillway/infra/processes/run'
import { quantile } from '@spillway/infra/rig/quantile'
import { type Neighbour, neighbourPath, neighbours, type Recipe } from './recipes.ts'
import type { User } from './start.ts'

const PROGRAM = fileURLToPath(new URL('../../../../loadtests/storm/src/main.ts', import.meta.url))
const USERS = 100
const PASSWORD = 'correct horse battery staple'
/** Several, because a storm's p99 mostly tells its first moment, when all log in at once: one of three is twice another. */
const STORMS = 3
const DURATION_S = 6
/** A storm before, in which code is compiled: a burst of a hundred logins keeps Next.js three times as long before the first thousand. */
const WARM_UP_S = 20
/** The most that the program takes: before the change, logins and stats wait for seconds. */
const TIMEOUT_S = 30
/** Just enough: what is slow here is told by the table, not by the program. */
const CALM_S = 2
const AFTER_S = 1

/** Those who log in. */
export const users: readonly User[] = Array.from({ length: USERS }, (_, index) => userOf(index + 1))

/** Of several storms, the median of each. */
export interface Measured {
  loginsPerSecond: number
  /** What ended the logins that did not succeed: a status or a failure, and how often in all storms. */
  reasons: Record<string, number>
  /** Of a storm, from when each was due. */
  p99Ms: Record<Neighbour, number>
}

/** What is read of the program's result: StormResult in loadtests/storm/src/result.ts. */
interface Result {
  logins: { perSecond: number; reasons: Record<string, number> }
  probes: { name: string; storm: { p99Ms: number } }[]
}

/** @param dir where the recipe is installed */
export async function measureStorms({ paths }: Recipe, url: string, dir: string): Promise<Measured> {
  const json = join(dir, 'storm.json')
  const named = { target: url, login: `POST ${paths.login}`, body: JSON.stringify(userOf('{n}')), json }
  const numbers = { users: USERS, timeout: TIMEOUT_S, calm: CALM_S, after: AFTER_S }
  // No goal of the program's own, which would end it with 1.
  const flags = Object.entries({ ...named, ...numbers, p99: TIMEOUT_S * 1_000 })
  const probes = neighbours.map((name) => ['probe', probeOf(name)] as const)
  const args = [...flags, ...probes].flatMap(([name, value]) => [`--${name}`, String(value)])
  const storm = async (seconds: number): Promise<Result> => {
    await run(process.execPath, ['--import', 'tsx', PROGRAM, ...args, '--duration', String(seconds)])
    return JSON.parse(await readFile(json, 'utf8'))
  }
  await storm(WARM_UP_S)
  const results: Result[] = []
  while (results.length < STORMS) results.push(await storm(DURATION_S))
  return toMeasured(results)
}

function toMeasured(results: readonly Result[]): Measured {
  const reasons: Record<string, number> = {}
  for (const [reason, count] of results.flatMap(({ logins }) => Object.entries(logins.reasons))) {
    reasons[reason] = (reasons[reason] ?? 0) + count
  }
  const median = (figure: (result: Result) => number | undefined): number => {
    const middle = quantile(
      results.map((result) => figure(result) ?? Number.NaN),
      0.5,
    )
    if (middle === undefined || Number.isNaN(middle)) throw new Error('a storm tells of no probes')
    return middle
  }
  const p99Ms = (wanted: Neighbour) =>
    median(({ probes }) => probes.find(({ name }) => name === probeOf(wanted))?.storm.p99Ms)
  return {
    loginsPerSecond: median(({ logins }) => logins.perSecond),
    reasons,
    p99Ms: { file: p99Ms('file'), time: p99Ms('time') },
  }
}

const probeOf = (name: Neighbour): string => `GET ${neighbourPath(name)}`

function userOf(n: number | string): User {
  return { email: `user-${n}@example.com`, password: PASSWORD }
}
