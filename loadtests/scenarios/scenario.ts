// A scenario is a question, and a plan of measurements that answer it. Each measurement starts and
// ends its servers, so that any can fail or be left out.

import type { Measured } from '@spillway/loadtests/results'
import type { Contender, Running } from '../contenders/contender.ts'
import { contenders } from '../contenders/contenders.ts'
import type { Algorithm } from '../contenders/hashing.ts'
import type { Accounts } from '../load/accounts.ts'

export interface Setting {
  databaseUrl: string
  redisUrl: string
  accounts: Accounts
  /** Those that were named [each scenario has its own]. */
  contenders: readonly string[] | undefined
  /** The part of a measurement under load [each scenario has its own]. */
  durationS: number | undefined
  /** In scenarios with a fixed number of users [each has its own]. */
  users: number | undefined
  warmUpMs: number
  /** The time of one verify with nothing around it, on one core. */
  bareHashMs: Record<Algorithm, number>
}

export interface Measurement {
  contender: string
  variant: string
  /** @throws one sentence when there is nothing to report */
  measure(): Promise<Measured>
}

export interface Scenario {
  name: string
  title: string
  /** One sentence. */
  question: string
  plan(setting: Setting): Measurement[]
}

interface OfContenders {
  /** Their names, unless others were asked for [the handler, a pool, both of Spillway's]. */
  few?: readonly string[]
  /** Of the hash that logins are verified with [argon2id]. */
  algorithm?: Algorithm
  /** How many callers come at once: not every contender can take any number. */
  callers?: number
  /** Of the contender's processes. */
  env?: NodeJS.ProcessEnv
}

const FEW = ['in-process', 'piscina', 'beside', 'spillway']

/** One measurement of each contender: started, warmed up by logins, measured, and always ended. */
export function ofContenders(
  setting: Setting,
  { few = FEW, algorithm = 'argon2id', callers = 0, env = {} }: OfContenders,
  measure: (running: Running) => Promise<Measured>,
): Measurement[] {
  const { databaseUrl, redisUrl, accounts, warmUpMs } = setting
  const names = setting.contenders ?? few
  const warmed = async (contender: Contender) => {
    if (callers > (contender.mostCallers ?? callers))
      throw new Error('not run: a process for each caller is more than the memory of this machine holds')
    const running = await contender.start({ algorithm, databaseUrl, redisUrl, env })
    try {
      await accounts.warmUp(running, algorithm, warmUpMs)
      return await measure(running)
    } finally {
      await running.close()
    }
  }
  return contenders
    .filter(({ name }) => names.includes(name))
    .map((contender) => ({ contender: contender.name, variant: algorithm, measure: () => warmed(contender) }))
}
