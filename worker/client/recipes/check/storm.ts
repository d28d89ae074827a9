// A storm of logins on a started recipe, by the program of the package that is installed beside it.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '@spillway/local/processes/run'
import { neighbours, type Recipe } from './recipes.ts'
import type { User } from './start.ts'

const PROGRAM = 'node_modules/.bin/spillway-storm'
const USERS = 100
const PASSWORD = 'correct horse battery staple'
const DURATION_S = 10
/** A storm before, in which code is compiled: the first logins of a cold process keep its loop for some tenths of a second. */
const WARM_UP_S = 3
/** The most that the program takes: before the change, logins and stats wait for seconds. */
const TIMEOUT_S = 30
/** Just enough: what is slow here is told by the table, not by the program. */
const CALM_S = 2
const AFTER_S = 1

/** Those who log in. */
export const users: readonly User[] = Array.from({ length: USERS }, (_, index) => userOf(index + 1))

export interface Measured {
  loginsPerSecond: number
  /** What ended the logins that did not succeed: a status or a failure, and how often. */
  reasons: Record<string, number>
  /** During the storm, from when each was due. */
  p99Ms: Record<keyof typeof neighbours, number>
}

/** What is read of the program's result: StormResult in src/storm/result.ts. */
interface Result {
  logins: { perSecond: number; reasons: Record<string, number> }
  probes: { storm: { p99Ms: number } }[]
}

/** @param dir where the recipe is installed */
export async function measureStorm({ paths }: Recipe, url: string, dir: string): Promise<Measured> {
  const json = join(dir, 'storm.json')
  const named = { target: url, login: `POST ${paths.login}`, body: JSON.stringify(userOf('{n}')), json }
  const numbers = { users: USERS, timeout: TIMEOUT_S, calm: CALM_S, after: AFTER_S }
  // No goal of the program's own, which would end it with 1.
  const flags = Object.entries({ ...named, ...numbers, p99: TIMEOUT_S * 1_000 })
  const probes = [neighbours.file, neighbours.time].map((path) => ['probe', `GET ${path}`] as const)
  const args = [...flags, ...probes].flatMap(([name, value]) => [`--${name}`, String(value)])
  for (const seconds of [WARM_UP_S, DURATION_S]) {
    await run(process.execPath, [join(dir, PROGRAM), ...args, '--duration', String(seconds)])
  }
  const { logins, probes: probed }: Result = JSON.parse(await readFile(json, 'utf8'))
  const [file, time] = probed.map(({ storm }) => storm.p99Ms)
  if (file === undefined || time === undefined) throw new Error('the storm tells of no probes')
  return { loginsPerSecond: logins.perSecond, reasons: logins.reasons, p99Ms: { file, time } }
}

function userOf(n: number | string): User {
  return { email: `user-${n}@example.com`, password: PASSWORD }
}
