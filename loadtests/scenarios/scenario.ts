// A scenario is a question, and a plan of measurements that answer it. Each measurement starts and
// ends its servers, so that any can fail or be left out.
import type { Contender, Part, Placement, Running, Services } from '../contenders/contender.ts'
import { startSpillway } from '../contenders/contenders.ts'
import type { Algorithm } from '../contenders/hashing.ts'
import type { Accounts, Credential, WarmUp } from '../load/accounts.ts'
import type { Measured, Row } from '../src/results.ts'

export interface Setting {
  services: Services
  /** For the contender's processes; undefined where nothing can be pinned. */
  cores: readonly number[] | undefined
  /** PostgreSQL and Redis, where they run here. */
  servers: readonly Part[]
  accounts: Accounts
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

/**
 * The contenders of a slow scenario: in the short set these [in the handler, and behind a queue].
 */
export function picked(setting: Setting, short: readonly string[] = ['in-process', 'spillway']): readonly Contender[] {
  return setting.short ? setting.contenders.filter(({ name }) => short.includes(name)) : setting.contenders
}

// Measurements of warm servers: started, compiled by logins, measured, and always ended.

/** With the hash that is measured: enough that every thread has computed one. */
const HASHES = 20
/** Enough that the worker always has a job at hand while the next is on its way from Redis. */
const PIPELINE_SLOTS = 16

type Measure = (running: Running) => Promise<Partial<Measured>>

interface OfContenders {
  contenders: readonly Contender[]
  /** Of the hash that logins are verified with [argon2id]. */
  algorithm?: Algorithm
  /** [the algorithm] */
  variant?: string
  /** How many callers come at once: not every contender can take any number. */
  callers?: number
}

/** One measurement for each contender, on its cores. */
export function ofContenders(setting: Setting, options: OfContenders, measure: Measure): Measurement[] {
  const { contenders, algorithm = 'argon2id', variant = algorithm, callers = 0 } = options
  const { cores, services } = setting
  return contenders.map((contender) => ({
    contender: contender.name,
    variant,
    placement: 'apart',
    async measure() {
      if (callers > (contender.mostCallers ?? callers)) {
        const count = callers.toLocaleString('en')
        throw new Error(
          `not run: ${count} callers would be as many processes at once, more than the machine's memory holds`,
        )
      }
      return whileWarm(contender.start({ cores, services, algorithm }), setting, algorithm, measure)
    },
  }))
}

/** Measurements of Spillway's pipeline alone, on all cores: one gateway, one worker, no hash. */
export function ofPipeline(setting: Setting, measure: Measure): Measurement[] {
  const { contenders, services } = setting
  const size = { cores: undefined, services, slots: PIPELINE_SLOTS }
  const measureWarm = () => whileWarm(startSpillway(size), setting, 'token', measure)
  return contenders
    .filter(({ name }) => name === 'spillway')
    .map(({ name: contender }) => ({ contender, variant: 'token', placement: 'together', measure: measureWarm }))
}

async function whileWarm(started: Promise<Running>, setting: Setting, credential: Credential, measure: Measure) {
  const { accounts, warmUp } = setting
  const running = await started
  try {
    await accounts.warmUp(running, 'token', warmUp)
    const hashes: WarmUp = { ...warmUp, logins: Math.min(HASHES, warmUp.logins) }
    if (credential !== 'token') await accounts.warmUp(running, credential, hashes)
    return await measure(running)
  } finally {
    await running.close()
  }
}
