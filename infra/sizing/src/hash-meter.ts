// What one hash takes of a core of this machine, by the engine that a worker here would use.
import { availableParallelism } from 'node:os'
import { quantile } from '@spillway/infra/rig/quantile'
import type { HashPolicy } from '@spillway/queue/wire/policy'
import { argon2Setting, bcryptSetting, newArgon2Setting, newBcryptSetting } from '@spillway/queue/wire/setting'
import { Hasher } from '@spillway/worker/hashing/index'
import { asPolicy, policySettings } from '@spillway/worker/hashing/policy'

export const DEFAULT_POLICY = {
  algorithm: 'argon2id',
  memoryKib: policySettings.ARGON2_MEMORY_KIB.default,
  time: policySettings.ARGON2_TIME.default,
  parallelism: policySettings.ARGON2_PARALLELISM.default,
} as const

/** Each is measured for this long, and so often at least. The median counts. */
const MEASURE_MS = 600
const SAMPLES = 5
/** So many for each core at a time: enough for full batches. */
const AT_ONCE = 16

/** Processor time: others on the machine disturb it less than the duration. */
export interface HashCost {
  /** With nothing else to hash: what a login takes. */
  aloneMs: number
  /** With every core busy and batches full: what a login costs. */
  fullMs: number
}

export type HashMeter = Awaited<ReturnType<typeof openHashMeter>>
export type MeasureHash = (policy: HashPolicy) => Promise<HashCost>

/** @param native whether the native engine is used, if it has been built: HASH_ENGINE */
export async function openHashMeter({ native }: { native: boolean }) {
  const slots = availableParallelism()
  const hasher = await Hasher.load(asPolicy(DEFAULT_POLICY), { native, slots })
  const decoy = (policy: HashPolicy) => hasher.decoy('a password', policy)

  async function costOf(policy: HashPolicy, atOnce: number): Promise<number> {
    const endsAt = performance.now() + MEASURE_MS
    const samples: number[] = []
    while (samples.length < (atOnce === 1 ? SAMPLES : 1) || performance.now() < endsAt) {
      const before = process.cpuUsage()
      await Promise.all(Array.from({ length: atOnce }, () => decoy(policy)))
      const { user, system } = process.cpuUsage(before)
      samples.push((user + system) / 1_000 / atOnce)
    }
    return quantile(samples, 0.5) ?? Number.NaN
  }

  /** Of full batches, the first of which is not measured: it maps memory. */
  async function fullMs(policy: HashPolicy): Promise<number> {
    await Promise.all(Array.from({ length: AT_ONCE * slots }, () => decoy(policy)))
    return await costOf(policy, AT_ONCE * slots)
  }

  return {
    async measure(policy: HashPolicy): Promise<HashCost> {
      await decoy(policy)
      return { aloneMs: await costOf(policy, 1), fullMs: await fullMs(policy) }
    },
    fullMs,
    engine: (algorithm: HashPolicy['algorithm']): string =>
      hasher.engines[algorithm === 'bcrypt' ? 'bcrypt' : 'argon2'] ?? 'unknown',
    slots,
    widthOf: (policy: HashPolicy): number => hasher.native?.widthOf(settingOf(policy)) ?? 1,
    close: (): void => hasher.native?.close(),
  }
}

function settingOf(policy: HashPolicy): string {
  return policy.algorithm === 'bcrypt'
    ? bcryptSetting(newBcryptSetting(policy.cost))
    : argon2Setting(newArgon2Setting(policy))
}
