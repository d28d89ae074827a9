// The hash itself: the same algorithm and cost from different packages, on one core, with nothing around it; and the native
// engine of the worker, where it has been built, in turn with the fastest of them. PBKDF2 and scrypt are in Node itself.
import { existsSync } from 'node:fs'
import { cpus } from 'node:os'
import { ADDON_FILE } from '@spillway/worker/hashing/addon-file'
import { NATIVE_NAME } from '@spillway/worker/hashing/native'
import { costOf } from '../contenders/hashing.ts'
import { bareHash, nativeHash, verified } from '../measure/bare-hash.ts'
import { derivedKeyCosts, engines as packages } from '../measure/engines.ts'
import type { Measurement, Scenario, Setting } from './scenario.ts'

export const engines: Scenario = {
  name: 'engines',
  title: 'The hash itself',
  question: 'What does one verify take in each implementation, with nothing around it?',
  durationS: 2,
  settings: () => ({ ...costOf, ...derivedKeyCosts, processor: cpus()[0]?.model ?? 'unknown' }),
  plan: (setting) => [...planPackages(setting), ...(existsSync(ADDON_FILE) ? planNative(setting) : [])],
}

function planPackages({ durationS, cores }: Setting): Measurement[] {
  return Object.keys(packages).map((name) => ({
    contender: name,
    variant: verified.find((algorithm) => name.endsWith(algorithm)) ?? 'argon2id',
    placement: 'apart',
    measure: async () => {
      const { medianMs, processorMs } = await bareHash(name, durationS * 1_000, cores)
      return { figures: { p50Ms: medianMs, hashProcessorMs: processorMs } }
    },
  }))
}

function planNative({ durationS, cores }: Setting): Measurement[] {
  return verified.flatMap((algorithm) =>
    (['alone', 'batches'] as const).map((load) => ({
      contender: NATIVE_NAME,
      variant: load === 'alone' ? `${algorithm}, alone` : `${algorithm}, full batches`,
      placement: 'apart' as const,
      measure: async () => {
        const { medianMs, processorMs, ofPackage } = await nativeHash(algorithm, load, durationS * 1_000, cores)
        const alone = load === 'alone' && { p50Ms: medianMs }
        return { figures: { hashProcessorMs: processorMs, ...alone, ofPackagePercent: ofPackage * 100 } }
      },
    })),
  )
}
