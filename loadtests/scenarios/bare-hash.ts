// The bare hash: what a login takes over it on a quiet machine, and what it takes by itself.
import { existsSync } from 'node:fs'
import { cpus } from 'node:os'
import { createApiClient } from '@spillway/infra/rig/api-client'
import { quantile } from '@spillway/infra/rig/quantile'
import { ADDON_FILE } from '@spillway/worker/hashing/addon-file'
import { NATIVE_NAME } from '@spillway/worker/hashing/native'
import type { Running } from '../contenders/contender.ts'
import { costOf } from '../contenders/hashing.ts'
import { bareHash, nativeHash } from '../measure/bare-hash.ts'
import { derivedKeyCosts, engines as packages } from '../measure/engines.ts'
import { outcomeOf, percentiles } from '../measure/tally.ts'
import { type Measurement, ofContenders, picked, type Scenario, type Setting } from './scenario.ts'

const BARE_MS = 400

export const idle: Scenario = {
  name: 'idle',
  title: 'One user, nobody else',
  question: 'What does one login take over the bare hash when nothing else happens?',
  durationS: 2,
  settings: () => ({}),
  plan: (setting) =>
    ofContenders(setting, { contenders: picked(setting) }, async (running) => {
      const bare = () => bareHash('@node-rs/argon2', BARE_MS, setting.cores)
      const before = await bare()
      const tookMs = await loginsInTurn(running, setting)
      const after = await bare()
      const bareHashMs = (before.medianMs + after.medianMs) / 2
      return {
        figures: { ...percentiles(tookMs), bareHashMs, overheadMs: (quantile(tookMs, 0.5) ?? 0) - bareHashMs },
      }
    }),
}

async function loginsInTurn({ url }: Running, { accounts, durationS }: Setting): Promise<number[]> {
  const client = createApiClient(url)
  const tookMs: number[] = []
  const endMs = performance.now() + durationS * 1_000
  for (let n = 0; performance.now() < endMs; n++) {
    const answer = await client.login(accounts.login('argon2id', n))
    const outcome = outcomeOf(answer)
    if (outcome !== 'ok') throw new Error(`a login on an idle server ended as ${outcome}, status ${answer.status}`)
    tookMs.push(answer.tookMs)
  }
  client.close()
  return tookMs
}

// The hash itself, by different packages on one core, and by the native engine, where it was built,
// in turn with the fastest of them.

const fastestPackage = {
  ...{ bcrypt: '@node-rs/bcrypt', argon2id: '@node-rs/argon2' },
  ...{ pbkdf2: 'crypto.pbkdf2', scrypt: 'crypto.scrypt' },
}

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
    variant: Object.keys(fastestPackage).find((algorithm) => name.endsWith(algorithm)) ?? 'argon2id',
    placement: 'apart',
    measure: async () => {
      const { medianMs, processorMs } = await bareHash(name, durationS * 1_000, cores)
      return { figures: { p50Ms: medianMs, hashProcessorMs: processorMs } }
    },
  }))
}

function planNative({ durationS, cores }: Setting): Measurement[] {
  return Object.entries(fastestPackage).flatMap(([algorithm, rival]) =>
    (['alone', 'batches'] as const).map((load) => ({
      contender: NATIVE_NAME,
      variant: load === 'alone' ? `${algorithm}, alone` : `${algorithm}, full batches`,
      placement: 'apart' as const,
      measure: async () => {
        const { medianMs, processorMs, ofPackage } = await nativeHash(rival, load, durationS * 1_000, cores)
        const alone = load === 'alone' && { p50Ms: medianMs }
        return { figures: { hashProcessorMs: processorMs, ...alone, ofPackagePercent: ofPackage * 100 } }
      },
    })),
  )
}
