// Servers are measured warm: started, logged in to until their code is compiled, handed over, and ended whatever happens.
import type { Contender, Running } from '../contenders/contender.ts'
import type { Algorithm } from '../contenders/hashing.ts'
import type { SpillwayOptions, SpillwayRunning } from '../contenders/spillway/start.ts'
import { startSystems } from '../contenders/spillway/systems.ts'
import type { Credential, WarmUp } from '../load/accounts.ts'
import type { Setting } from './scenario.ts'

/** With the hash that is measured: enough that every thread has computed one. */
const HASHES = 20
/** Enough that the worker always has a job at hand while the next is on its way from Redis. */
const PIPELINE_SLOTS = 16

/** A contender, on its cores. */
export function withContender<T>(
  contender: Contender,
  setting: Setting,
  algorithm: Algorithm,
  body: (running: Running) => Promise<T>,
): Promise<T> {
  const { cores, services } = setting
  return handOver(contender.start({ cores, services, algorithm }), setting, algorithm, body)
}

/** Spillway in another size or place than the contender. */
export function withSpillway<T>(
  options: Omit<SpillwayOptions, 'services' | 'testHashes'>,
  setting: Setting,
  credential: Credential,
  body: (running: SpillwayRunning) => Promise<T>,
): Promise<T> {
  return withSystems(1, options, setting, credential, body)
}

/** So many of them, each with a queue, gateways and workers of its own. */
export function withSystems<T>(
  count: number,
  options: Omit<SpillwayOptions, 'services' | 'testHashes'>,
  setting: Setting,
  credential: Credential,
  body: (running: SpillwayRunning) => Promise<T>,
): Promise<T> {
  const { services } = setting
  return handOver(startSystems(count, { ...options, services, testHashes: true }), setting, credential, body)
}

/** Spillway's pipeline alone, on all cores: one gateway, and one worker that hashes nothing. */
export function withPipeline<T>(setting: Setting, body: (running: SpillwayRunning) => Promise<T>): Promise<T> {
  const size = { cores: undefined, gateways: 1, workers: 1, concurrency: PIPELINE_SLOTS }
  return withSpillway(size, setting, 'token', body)
}

async function handOver<R extends Running, T>(
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
