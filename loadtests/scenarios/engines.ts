// The hash itself: the same algorithm and cost from different packages, on one core, with nothing around it; and the native
// engine of the worker, where it has been built, in turn with the fastest of them.
import { existsSync } from 'node:fs'
import { cpus } from 'node:os'
import { ADDON_FILE, NATIVE_NAME } from '@spillway/worker/native'
import { algorithms, costOf } from '../contenders/hashing.ts'
import { bareHash, nativeHash } from '../measure/bare-hash.ts'
import { engines as packages } from '../measure/engines.ts'
import type { Measurement, Scenario, Setting } from './scenario.ts'

const DURATION_S = 2

export const engines: Scenario = {
  name: 'engines',
  title: 'The hash itself',
  question: 'What does one verify take in each implementation, with nothing around it?',
  settings: (setting) => ({
    seconds: setting.durationS ?? DURATION_S,
    ...costOf,
    processor: cpus()[0]?.model ?? 'unknown',
  }),
  plan: (setting) => [...planPackages(setting), ...(existsSync(ADDON_FILE) ? planNative(setting) : [])],
}

function planPackages(setting: Setting): Measurement[] {
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
}

function planNative(setting: Setting): Measurement[] {
  const durationS = setting.durationS ?? DURATION_S
  return algorithms.flatMap((algorithm) =>
    (['alone', 'batches'] as const).map((load) => ({
      contender: NATIVE_NAME,
      variant: load === 'alone' ? `${algorithm}, alone` : `${algorithm}, full batches`,
      placement: 'apart' as const,
      estimatedS: durationS + 2,
      measure: async () => {
        const took = await nativeHash(algorithm, load, durationS * 1_000, setting.cores)
        return {
          figures: {
            hashProcessorMs: took.processorMs,
            ...(load === 'alone' && { p50Ms: took.medianMs }),
            ofPackagePercent: took.ofPackage * 100,
          },
        }
      },
    })),
  )
}
