// A scenario is a question, and a plan of measurements that together answer it. Each measurement starts its servers
// and ends them, so that any of them can fail or be left out without harm to the rest.
import type { Contender, Part, Services } from '../contenders/contender.ts'
import type { Algorithm } from '../contenders/hashing.ts'
import type { Accounts, WarmUp } from '../load/accounts.ts'
import type { Placement } from '../measure/cores.ts'
import type { Measured, Row } from '../src/results.ts'

export interface Setting {
  services: Services
  /** For the contender's processes; undefined where nothing can be pinned. */
  cores: readonly number[] | undefined
  /** PostgreSQL and Redis, where they run here. */
  servers: readonly Part[]
  accounts: Accounts
  /** The contenders that take part. */
  contenders: readonly Contender[]
  /** The short set of everything: slow scenarios pick from the contenders. */
  short: boolean
  /** The part of a measurement under load: `--duration`, else the scenario's own. */
  durationS: number
  /** `--users`, for scenarios with a fixed number of them. */
  users: number | undefined
  /** `--rate`, requests per second. */
  rate: number | undefined
  /** The logins without a hash that make a server warm. */
  warmUp: WarmUp
  /** The time of one verify with nothing around it, on one core. */
  bareHashMs: Record<Algorithm, number>
}

export interface Measurement {
  contender: string
  variant: string
  placement: Placement
  /** @throws one sentence when there is nothing to report */
  measure(): Promise<Partial<Measured>>
}

export interface Scenario {
  name: string
  title: string
  /** One sentence. */
  question: string
  /** Without `--duration`. */
  durationS: number
  /** Beside the duration. */
  settings(setting: Setting): Row
  plan(setting: Setting): Measurement[]
}

/** The contenders of a slow scenario: in the short set only these [one that hashes at hand, and one behind a queue]. */
export function picked(setting: Setting, short: readonly string[] = ['in-process', 'spillway']): readonly Contender[] {
  return setting.short ? setting.contenders.filter(({ name }) => short.includes(name)) : setting.contenders
}
