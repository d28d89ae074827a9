// The bare hash: what a login takes over it on a quiet machine, and what it takes by itself.
import { existsSync } from 'node:fs'
import { createApiClient } from '@spillway/infra/harness/api-client'
import { pinned } from '@spillway/infra/processes/cores'
import { run } from '@spillway/infra/processes/run'
import { ADDON_FILE, NATIVE_NAME } from '@spillway/worker/hashing/native'
import { allCores, compiled, contenderCores, type Running } from '../contenders/contender.ts'
import { engines as packages } from '../measure/engines.ts'
import { quantile } from '../measure/quantile.ts'
import { outcomeOf, percentiles } from '../measure/tally.ts'
import { type Measurement, ofContenders, type Scenario, type Setting } from './scenario.ts'

const BARE_MS = 400

export const idle: Scenario = {
  name: 'idle',
  title: 'One user, nobody else',
  question: 'What does one login take over the bare hash when nothing else happens?',
  plan: (setting) =>
    ofContenders(setting, {}, async (running) => {
      const before = await bareHash('@node-rs/argon2', BARE_MS)
      const tookMs = await loginsInTurn(running, setting)
      const after = await bareHash('@node-rs/argon2', BARE_MS)
      const bareHashMs = (before.medianMs + after.medianMs) / 2
      const overheadMs = (quantile(tookMs, 0.5) ?? 0) - bareHashMs
      return { figures: { ...percentiles(tookMs), bareHashMs, overheadMs } }
    }),
}

async function loginsInTurn({ url }: Running, { accounts, durationS = 2 }: Setting): Promise<number[]> {
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

/** With nothing else, one at a time or in full batches; or in full batches on every processor. */
type Load = 'alone' | 'full batches' | 'every processor'

const fastestPackage = {
  bcrypt: '@node-rs/bcrypt',
  argon2id: '@node-rs/argon2',
  pbkdf2: 'crypto.pbkdf2',
  scrypt: 'crypto.scrypt',
}

/** The hash itself, by packages and by the native engine, in turn with the fastest of them. */
export const engines: Scenario = {
  name: 'engines',
  title: 'The hash itself',
  question: 'What does one verify take, with all other processors idle and with a thread on each?',
  plan({ durationS = 2 }) {
    const forMs = durationS * 1_000
    const algorithmOf = (name: string) => Object.keys(fastestPackage).find((each) => name.endsWith(each)) ?? 'argon2id'
    const ofPackages = Object.keys(packages).flatMap((name) =>
      (['alone', 'every processor'] as const).map((load) =>
        planHash(name, algorithmOf(name), load, () => bareHash(name, forMs, load)),
      ),
    )
    const ofEngine = Object.entries(fastestPackage).flatMap(([algorithm, rival]) =>
      (['alone', 'full batches', 'every processor'] as const).map((load) =>
        planHash(NATIVE_NAME, algorithm, load, () => nativeHash(rival, load, forMs)),
      ),
    )
    return existsSync(ADDON_FILE) ? [...ofPackages, ...ofEngine] : ofPackages
  },
}

function planHash(
  contender: string,
  algorithm: string,
  load: Load,
  measure: () => Promise<BareHash & { ofPackage?: number }>,
): Measurement {
  return {
    contender,
    variant: `${algorithm}, ${load}`,
    measure: async () => {
      const { medianMs, processorMs, ofPackage } = await measure()
      const share = ofPackage === undefined ? {} : { ofPackagePercent: ofPackage * 100 }
      return { figures: { hashProcessorMs: processorMs, perSecond: 1_000 / medianMs, ...share } }
    },
  }
}

/** The median times of one verify. */
interface BareHash {
  /** With several at a time, its share of what they took together. */
  medianMs: number
  /** Processor time, in all threads. */
  processorMs: number
}

/** In a process on the contender's cores. */
export async function bareHash(name: string, forMs: number, load: Load = 'alone'): Promise<BareHash> {
  const [took] = await inTurn([name], forMs, load)
  if (took === undefined) throw new Error(`${name} was not measured`)
  return took
}

/**
 * The native engine in turn with a package, and as a share of it: of the latency alone, of the
 * processor time in full batches, and of the machine's time with every processor busy.
 */
async function nativeHash(rival: string, load: Load, forMs: number) {
  const [native, theirs] = await inTurn(
    [`native:${rival}:${load === 'alone' ? 'alone' : 'batches'}`, rival],
    forMs,
    load,
  )
  if (native === undefined || theirs === undefined) throw new Error('the native engine was not measured')
  const figure = load === 'full batches' ? 'processorMs' : 'medianMs'
  return { ...native, ofPackage: native[figure] / theirs[figure] }
}

async function inTurn(names: readonly string[], forMs: number, load: Load): Promise<BareHash[]> {
  const isEverywhere = load === 'every processor'
  const threads = String(isEverywhere ? allCores.length : 1)
  const program = [process.execPath, compiled('measure/bare-hash-program'), String(forMs), threads, ...names]
  const [command = '', ...args] = pinned(program, isEverywhere ? contenderCores && allCores : contenderCores)
  // Packages hash on libuv's threads.
  return JSON.parse(await run(command, args, { env: { ...process.env, UV_THREADPOOL_SIZE: threads } }))
}
