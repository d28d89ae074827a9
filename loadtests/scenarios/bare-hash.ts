// The bare hash: what a login takes over it on a quiet machine, and what it takes by itself.
import { existsSync, readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { pinned } from '@spillway/infra/processes/processor-time'
import { run } from '@spillway/infra/processes/run'
import { createApiClient } from '@spillway/infra/rig/api-client'
import { quantile } from '@spillway/infra/rig/quantile'
import { ADDON_FILE, NATIVE_NAME } from '@spillway/worker/hashing/native'
import { allCores, compiled, type Running } from '../contenders/contender.ts'
import { costOf } from '../contenders/hashing.ts'
import { derivedKeyCosts, engines as packages } from '../measure/engines.ts'
import { outcomeOf, percentiles } from '../measure/tally.ts'
import type { ScenarioResult, Summary } from '../src/results.ts'
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

// The hash itself, by different packages on one core and on all, and by the native engine, where it
// was built, in turn with the fastest of them.

const fastestPackage = {
  ...{ bcrypt: '@node-rs/bcrypt', argon2id: '@node-rs/argon2' },
  ...{ pbkdf2: 'crypto.pbkdf2', scrypt: 'crypto.scrypt' },
}

export const engines: Scenario = {
  name: 'engines',
  title: 'The hash itself',
  question: 'What does one verify take, with all other processors idle and with a thread on each?',
  durationS: 2,
  settings: () => ({
    ...costOf,
    ...derivedKeyCosts,
    processor: cpus()[0]?.model ?? 'unknown',
    processors: cpus().length,
    [THREADS]: threadsOfCore() ?? 'not told',
  }),
  plan: (setting) => [...planPackages(setting), ...(existsSync(ADDON_FILE) ? planNative(setting) : [])],
}

/** Of what as many cores would do: siblings, which share the ports of a core, do less together. */
const SIBLINGS_BELOW = 0.75

/**
 * Whether the processors are siblings, which a virtual machine may hide: by the engine's batches of
 * PBKDF2, which need the ports of a core and no memory. Undefined without its figures.
 */
export function processorsInWords(summaries: readonly Summary[], { settings }: ScenarioResult): string | undefined {
  const perSecond = (load: Load) =>
    summaries.find(({ contender, variant }) => contender === NATIVE_NAME && variant === `pbkdf2, ${load}`)?.figures
      .perSecond
  const [one, all, processors] = [perSecond('full batches'), perSecond('every processor'), Number(settings.processors)]
  if (one === undefined || all === undefined || !(processors > 1)) return undefined
  const are =
    all / one / processors < SIBLINGS_BELOW ? 'siblings: hardware threads that share cores' : 'cores of their own'
  return `The ${processors} processors are ${are}. Together they hash ${(all / one).toFixed(2)} times as much as one of them. Linux tells hardware threads of a core: ${settings[THREADS]}.`
}

const THREADS = 'hardware threads of a core'

/** As Linux tells it. */
function threadsOfCore(): number | undefined {
  try {
    const siblings = readFileSync('/sys/devices/system/cpu/cpu0/topology/thread_siblings_list', 'utf8').trim()
    const ranges = siblings.split(',').map((range) => range.split('-').map(Number))
    return ranges.reduce((sum, [first = 0, last = first]) => sum + last - first + 1, 0)
  } catch {
    return undefined
  }
}

function planPackages({ durationS, cores }: Setting): Measurement[] {
  const algorithmOf = (name: string) =>
    Object.keys(fastestPackage).find((algorithm) => name.endsWith(algorithm)) ?? 'argon2id'
  return Object.keys(packages).flatMap((name) =>
    (['alone', 'every processor'] as const).map((load) =>
      planHash(name, algorithmOf(name), load, async () => await bareHash(name, durationS * 1_000, cores, load)),
    ),
  )
}

function planNative({ durationS, cores }: Setting): Measurement[] {
  return Object.entries(fastestPackage).flatMap(([algorithm, rival]) =>
    (['alone', 'full batches', 'every processor'] as const).map((load) =>
      planHash(NATIVE_NAME, algorithm, load, async () => await nativeHash(rival, load, durationS * 1_000, cores)),
    ),
  )
}

function planHash(
  contender: string,
  algorithm: string,
  load: Load,
  measure: () => Promise<{ medianMs: number; processorMs: number; ofPackage?: number }>,
): Measurement {
  return {
    contender,
    variant: `${algorithm}, ${load}`,
    placement: 'apart',
    measure: async () => {
      const { medianMs, processorMs, ofPackage } = await measure()
      return {
        figures: {
          hashProcessorMs: processorMs,
          perSecond: 1_000 / medianMs,
          ...(load === 'alone' && { p50Ms: medianMs }),
          ...(ofPackage !== undefined && { ofPackagePercent: ofPackage * 100 }),
        },
      }
    },
  }
}

// The bare hash, of a package or the native engine, in a process on the contender's cores.

type Cores = readonly number[] | undefined

/** The median times of one verify. */
interface BareHash {
  /** With several at a time, its share of what they took together. */
  medianMs: number
  /** Processor time, in all threads. */
  processorMs: number
}

/** With nothing else, one at a time or in full batches; or in full batches on every processor. */
type Load = 'alone' | 'full batches' | 'every processor'

/** @param engine its package, or the native engine with its load: see the program */
export async function bareHash(engine: string, forMs: number, cores: Cores, load: Load = 'alone'): Promise<BareHash> {
  const [took] = await inTurn([engine], forMs, cores, load)
  if (took === undefined) throw new Error(`${engine} was not measured`)
  return took
}

/**
 * The native engine in turn with a package, and as a share of it: of the latency alone, of the
 * processor time in full batches, and of the machine's time with every processor busy.
 */
async function nativeHash(rival: string, load: Load, forMs: number, cores: Cores) {
  const ours = `native:${rival}:${load === 'alone' ? 'alone' : 'batches'}`
  const [native, theirs] = await inTurn([ours, rival], forMs, cores, load)
  if (native === undefined || theirs === undefined) throw new Error('the native engine was not measured')
  const figure = load === 'full batches' ? 'processorMs' : 'medianMs'
  return { ...native, ofPackage: native[figure] / theirs[figure] }
}

async function inTurn(names: readonly string[], forMs: number, cores: Cores, load: Load): Promise<BareHash[]> {
  const isEverywhere = load === 'every processor'
  const threads = String(isEverywhere ? allCores.length : 1)
  const program = [process.execPath, compiled('measure/bare-hash-program'), String(forMs), threads, ...names]
  const [command = '', ...args] = pinned(program, isEverywhere ? cores && allCores : cores)
  // Packages hash on libuv's threads.
  return JSON.parse(await run(command, args, { env: { ...process.env, UV_THREADPOOL_SIZE: threads } }))
}
