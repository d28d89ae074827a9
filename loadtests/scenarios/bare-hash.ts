// The bare hash: what a login takes over it on a quiet machine, what it takes by itself, and how much of a core is left to it.
import { existsSync } from 'node:fs'
import { cpus } from 'node:os'
import { createApiClient } from '@spillway/infra/rig/api-client'
import { ADDON_FILE } from '@spillway/worker/hashing/addon-file'
import { NATIVE_NAME } from '@spillway/worker/hashing/native'
import type { Running } from '../contenders/contender.ts'
import { type Algorithm, algorithms, costOf } from '../contenders/hashing.ts'
import { loginCaller, withCallers } from '../load/closed.ts'
import { bareHash, fastestPackage, nativeHash, verified } from '../measure/bare-hash.ts'
import { generatorCores } from '../measure/cores.ts'
import { derivedKeyCosts, engines as packages } from '../measure/engines.ts'
import { Latency, outcomeOf } from '../measure/tally.ts'
import { latencyFigures, ofContenders, ofSpillway } from './measurements.ts'
import { type Measurement, picked, type Scenario, type Setting } from './scenario.ts'

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
      const latency = await loginsInTurn(running, setting)
      const after = await bare()
      const bareHashMs = (before.medianMs + after.medianMs) / 2
      return {
        figures: { ...latencyFigures(latency), bareHashMs, overheadMs: latency.percentiles.p50Ms - bareHashMs },
      }
    }),
}

async function loginsInTurn({ url }: Running, { accounts, durationS }: Setting): Promise<Latency> {
  const client = createApiClient(url)
  const latency = new Latency()
  const endMs = performance.now() + durationS * 1_000
  for (let n = 0; performance.now() < endMs; n++) {
    const answer = await client.login(accounts.login('argon2id', n))
    const outcome = outcomeOf(answer)
    if (outcome !== 'ok') throw new Error(`a login on an idle server ended as ${outcome}, status ${answer.status}`)
    latency.record(answer.tookMs)
  }
  client.close()
  return latency
}

// The hash itself: the same algorithm and cost from different packages, on one core, with nothing around it; and the native
// engine of the worker, where it has been built, in turn with the fastest of them. PBKDF2 and scrypt are in Node itself.

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

// How much of a core's hashing is left when it is done for others: a worker's core against the same hash in a bare loop there.

const LOOP_MS = 1_500
/** Callers for the one slot: enough for full batches, and that it never waits for one. */
const CALLERS = 32

export const efficiency: Scenario = {
  name: 'efficiency',
  title: 'One core that does nothing but hash',
  question:
    'How many logins a second does a worker get from its core, of those that a bare loop of the hash does there?',
  durationS: 5,
  settings: () => ({ callers: CALLERS }),
  plan: (setting) => algorithms.flatMap((algorithm) => planOf(setting, algorithm)),
}

function planOf(setting: Setting, algorithm: Algorithm): Measurement[] {
  const workerCores = setting.cores?.slice(0, 1)
  const size = { cores: setting.cores && generatorCores, workerCores, gateways: 1, workers: 1, concurrency: 1 }
  const bare = () => bareHash(fastestPackage[algorithm], LOOP_MS, workerCores)
  const options = { size, credential: algorithm, variant: algorithm, placement: 'worker-apart' } as const
  return ofSpillway(setting, options, async ({ urls }) => {
    const before = await bare()
    const loop = { urls, callers: CALLERS, caller: loginCaller(setting.accounts, algorithm) }
    const { tally, seconds } = await withCallers(loop, (countFor) => countFor(setting.durationS))
    const after = await bare()
    const perSecond = tally.counts.ok / seconds
    const barePerSecond = 2_000 / (before.meanMs + after.meanMs)
    return {
      figures: { perSecond, barePerSecond, efficiencyPercent: (100 * perSecond) / barePerSecond },
    }
  })
}
