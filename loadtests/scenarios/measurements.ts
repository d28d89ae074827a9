// Measurements of servers that are warm: started, logged in to until their code is compiled, measured, and ended whatever happens.
import type { Contender, Running } from '../contenders/contender.ts'
import type { Algorithm } from '../contenders/hashing.ts'
import { type SpillwayOptions, type SpillwayRunning, startSystems } from '../contenders/spillway.ts'
import type { Credential, WarmUp } from '../load/accounts.ts'
import type { ClosedLoopResult } from '../load/closed.ts'
import { type observe, type PartTime, timeOf } from '../measure/observe.ts'
import type { Latency } from '../measure/tally.ts'
import type { Measured } from '../src/results.ts'
import type { Measurement, Setting } from './scenario.ts'

/** With the hash that is measured: enough that every thread has computed one. */
const HASHES = 20
/** Enough that the worker always has a job at hand while the next is on its way from Redis. */
export const PIPELINE_SLOTS = 16

type Measure<R extends Running> = (running: R) => Promise<Partial<Measured>>

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
export function ofContenders(setting: Setting, options: OfContenders, measure: Measure<Running>): Measurement[] {
  const { contenders, algorithm = 'argon2id', variant = algorithm, callers = 0 } = options
  const { cores, services } = setting
  return contenders.map((contender) => ({
    contender: contender.name,
    variant,
    placement: 'apart',
    async measure() {
      const refusal = contender.refuses?.(callers)
      if (refusal !== undefined) throw new Error(`not run: ${refusal}`)
      return whileWarm(contender.start({ cores, services, algorithm }), setting, algorithm, measure)
    },
  }))
}

interface OfSpillway extends Pick<Measurement, 'placement' | 'variant'> {
  size: Omit<SpillwayOptions, 'services' | 'testHashes'>
  credential: Credential
  /** How many of this size, each with a queue, gateways and workers of its own [1]. */
  systems?: number
}

/** A measurement of Spillway in another size or place than the contender; empty where Spillway does not take part. */
export function ofSpillway(
  setting: Setting,
  { size, credential, systems = 1, placement, variant }: OfSpillway,
  measure: Measure<SpillwayRunning>,
): Measurement[] {
  if (!setting.contenders.some(({ name }) => name === 'spillway')) return []
  const options = { ...size, services: setting.services, testHashes: true }
  const measureWarm = () => whileWarm(startSystems(systems, options), setting, credential, measure)
  return [{ contender: 'spillway', variant, placement, measure: measureWarm }]
}

/** A measurement of Spillway's pipeline alone, on all cores: one gateway, and one worker that hashes nothing. */
export function ofPipeline(setting: Setting, measure: Measure<SpillwayRunning>): Measurement[] {
  const size = { cores: undefined, gateways: 1, workers: 1, concurrency: PIPELINE_SLOTS }
  return ofSpillway(setting, { size, credential: 'token', variant: 'token', placement: 'together' }, measure)
}

async function whileWarm<R extends Running, T>(
  started: Promise<R>,
  { accounts, warmUp }: Setting,
  credential: Credential,
  body: (running: R) => Promise<T>,
): Promise<T> {
  const running = await started
  try {
    await accounts.warmUp(running, 'token', warmUp)
    const hashes: WarmUp = { ...warmUp, logins: Math.min(HASHES, warmUp.logins) }
    if (credential !== 'token') await accounts.warmUp(running, credential, hashes)
    return await body(running)
  } finally {
    await running.close()
  }
}

// The figures that several scenarios take from what they observed.

/** The effects of a closed loop of requests on its callers, on the API process and on bystanders. */
export function loginFigures(observed: Awaited<ReturnType<typeof observe<ClosedLoopResult>>>): Measured {
  const { result, seconds, parts, generatorPercent, bystanders } = observed
  const { tally } = result
  return {
    figures: {
      perSecond: tally.counts.ok / result.seconds,
      ...latencyFigures(tally.latency),
      failedPercent: tally.share('timeout', 'error'),
      ...bystanderFigures('neighbour', bystanders.neighbour),
      ...bystanderFigures('healthz', bystanders.healthz),
      generatorPercent,
      ...(tally.counts.ticket + tally.counts.busy > 0 && { deferredPercent: tally.share('ticket', 'busy') }),
      ...(parts.length > 0 && { apiPercent: timeOf(parts, 'api') / seconds / 10 }),
      ...footprint(parts),
      ...(parts.length > 0 && tally.counts.ok > 0 && { processorMsPerAnswer: timeOf(parts) / tally.counts.ok }),
    },
    series: {},
  }
}

/** The memory of the largest process of each role, and the start of the slowest. */
function footprint(parts: readonly PartTime[]): Record<string, number> {
  return Object.fromEntries(
    (['api', 'worker'] as const).flatMap((role) => {
      const ofRole = parts.filter((part) => part.role === role)
      const memory = ofRole.flatMap(({ peakMb = [] }) => peakMb)
      const ready = ofRole.flatMap(({ readyMs = [] }) => readyMs)
      return [
        ...(memory.length > 0 ? [[`${role}Mb`, Math.max(...memory)] as const] : []),
        ...(ready.length > 0 ? [[`${role}ReadyMs`, Math.max(...ready)] as const] : []),
      ]
    }),
  )
}

function bystanderFigures(name: 'neighbour' | 'healthz', { percentiles }: Latency): Record<string, number> {
  const { p50Ms, p95Ms, p99Ms } = percentiles
  return { [`${name}P50Ms`]: p50Ms, [`${name}P95Ms`]: p95Ms, [`${name}P99Ms`]: p99Ms }
}

/** The percentiles people ask for; empty when nothing was answered, since 0 ms would be praise. */
export function latencyFigures(latency: Latency): Record<string, number> {
  const { count, p50Ms, p95Ms, p99Ms } = latency.percentiles
  return count === 0 ? {} : { p50Ms, p95Ms, p99Ms }
}
