// Servers are measured warm: started, logged in to until their code is compiled, handed over, and ended whatever happens.
import type { Contender, Running } from '../contenders/contender.ts'
import type { Algorithm } from '../contenders/hashing.ts'
import {
  type SpillwayOptions,
  type SpillwayRunning,
  startPipeline,
  startSpillway,
} from '../contenders/spillway/start.ts'
import type { Credential, WarmUp } from '../load/accounts.ts'
import type { Setting } from './scenario.ts'

/** With the hash that is measured: enough that every thread has computed one. */
const HASHES = 20

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
  const { services } = setting
  return handOver(startSpillway({ ...options, services, testHashes: true }), setting, credential, body)
}

/** Spillway's pipeline without a hash, on all cores. */
export function withPipeline<T>(setting: Setting, body: (running: SpillwayRunning) => Promise<T>): Promise<T> {
  return handOver(startPipeline(setting.services), setting, 'token', body)
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
