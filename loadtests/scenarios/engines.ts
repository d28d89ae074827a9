// The hash itself: the same algorithm and cost from different packages, on one core, with nothing around it.
import { costOf } from '../contenders/hashing.ts'
import { bareHash } from '../measure/bare-hash-run.ts'
import { engines as packages } from '../measure/engines.ts'
import type { Scenario } from './scenario.ts'

const DURATION_S = 2

export const engines: Scenario = {
  name: 'engines',
  title: 'The hash itself',
  question: 'What does one verify take in each implementation, with nothing around it?',
  settings: (setting) => ({ seconds: setting.durationS ?? DURATION_S, ...costOf }),
  plan: (setting) => {
    const durationS = setting.durationS ?? DURATION_S
    return Object.keys(packages).map((name) => ({
      contender: name,
      variant: name.includes('bcrypt') ? 'bcrypt' : 'argon2id',
      placement: 'apart',
      estimatedS: durationS + 1,
      measure: async () => {
        const { medianMs, processorMs } = await bareHash(name, durationS * 1_000, setting.cores)
        return { figures: { p50Ms: medianMs, hashProcessorMs: processorMs } }
      },
    }))
  },
}
