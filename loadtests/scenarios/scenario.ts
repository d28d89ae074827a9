// What a scenario is: a question, and a plan of measurements that together answer it. Each measurement starts what it
// measures and ends it, so that any of them can fail or be left out without harm to the rest.
import type { Contender, Part, Running, Services, StartOptions } from '../contenders/contender.ts'
import type { Algorithm } from '../contenders/hashing.ts'
import type { Accounts } from '../load/accounts.ts'
import type { Placement } from '../measure/cores.ts'
import type { Measured, Row } from '../src/results.ts'

export interface Setting {
  services: Services
  /** For the contender's processes; undefined where nothing can be pinned. */
  cores: readonly number[] | undefined
  /** PostgreSQL and Redis, where they run here. */
  servers: readonly Part[]
  accounts: Accounts
  /** Who takes part. */
  contenders: readonly Contender[]
  /** The short set of everything: slow scenarios pick from the contenders. */
  short: boolean
  /** `--duration`, for the part of a measurement under load. */
  durationS: number | undefined
  /** `--users`, for scenarios with a fixed number of them. */
  users: number | undefined
  /** `--rate`, requests per second. */
  rate: number | undefined
  /** How long a server is logged in to before it is measured, with a real hash and with a double. */
  warmUpMs: { hash: number; double: number }
  /** What one verify takes with nothing around it, on one core. */
  bareHashMs: Record<Algorithm, number>
}

export interface Measurement {
  contender: string
  variant: string
  placement: Placement
  /** For the progress bar: everything, start and end included. */
  estimatedS: number
  /** @throws one sentence when there is nothing to report */
  measure(): Promise<Partial<Measured>>
}

export interface Scenario {
  name: string
  title: string
  /** What it is to find out, in one sentence. */
  question: string
  settings(setting: Setting): Row
  plan(setting: Setting): Measurement[]
}

/** What starting, warming up and ending take. */
export const AROUND_S = 4

/** Starts a contender, hands it over warm, and ends it whatever happens. */
export async function withContender<T>(
  contender: Contender,
  setting: Setting,
  algorithm: Algorithm,
  body: (running: Running) => Promise<T>,
): Promise<T> {
  const options: StartOptions = { cores: setting.cores, services: setting.services, algorithm }
  const running = await contender.start(options)
  try {
    const { hash, double } = setting.warmUpMs
    if (contender.takesDoubles) await setting.accounts.warmUp(running, 'token', double)
    await setting.accounts.warmUp(running, algorithm, contender.takesDoubles ? 0 : hash)
    return await body(running)
  } finally {
    await running.close()
  }
}

/** The contenders of a slow scenario: in the short set only these. */
export function picked(setting: Setting, short: readonly string[]): readonly Contender[] {
  return setting.short ? setting.contenders.filter(({ name }) => short.includes(name)) : setting.contenders
}
