// OWASP's minimums (Password Storage Cheat Sheet). Those of argon2id are equal in strength and
// differ in memory, so that a site may take the one with the most logins.
import type { HashPolicy } from '@spillway/queue/wire/policy'
import { PROGRAM_KIB } from '@spillway/worker/hashing/threads'
import type { BusyCost, Figures } from './figures.ts'
import type { HashMeter } from './hash-meter.ts'
import type { CalibrationOptions } from './options.ts'

type Argon2Policy = Extract<HashPolicy, { algorithm: 'argon2id' }>

export function argon2id(memoryKib: number, time: number): Argon2Policy {
  return { algorithm: 'argon2id', memoryKib, time, parallelism: 1 }
}

/** With one lane: the least memory for 1 to 5 passes. More passes need no less. */
export const OWASP_ARGON2_KIB = [47_104, 19_456, 12_288, 9_216, 7_168] as const
export const OWASP_BCRYPT_COST = 10

/** Takes some ten seconds: argon2id by its minimums, bcrypt by its costs up to 12. */
export async function measureMinimums({ fullMs, widthOf }: HashMeter): Promise<BusyCost[]> {
  const bcrypt = [0, 1, 2].map((more) => ({ algorithm: 'bcrypt', cost: OWASP_BCRYPT_COST + more }) as const)
  const all = [...OWASP_ARGON2_KIB.map((kib, n) => argon2id(kib, n + 1)), ...bcrypt]
  const measured: BusyCost[] = []
  // The width that its batches have led to.
  for (const policy of all) measured.push({ policy, fullMs: await fullMs(policy), width: widthOf(policy) })
  return measured
}

/** Logins a second of all slots, and the memory of a worker whose batches are full. */
export function loginsBy(
  all: readonly BusyCost[],
  { slots, coresPerWorker, turnaroundMs }: { slots: number; coresPerWorker: number; turnaroundMs: number },
) {
  return all.map(({ policy, width, fullMs }) => ({
    policy,
    perSecond: (slots * 1_000) / (fullMs + turnaroundMs),
    workerMib: Math.ceil((PROGRAM_KIB + (coresPerWorker + 1) * width * memoryOf(policy)) / 1_024),
  }))
}

export function describeMinimums(
  all: readonly BusyCost[],
  slots: number,
  { coresPerWorker, memoryMib }: CalibrationOptions,
  { turnaroundMs }: Figures,
): string[] {
  const rows = loginsBy(all, { slots, coresPerWorker, turnaroundMs })
  const [best] = rows
    .filter(({ policy, workerMib }) => policy.algorithm === 'argon2id' && workerMib <= memoryMib)
    .sort((one, other) => other.perSecond - one.perSecond)
  const cores = slots === 1 ? '1 core' : `${slots} cores`
  return [
    `OWASP's minimums, every slot busy with full batches   logins a second (${cores})   memory of a worker`,
    ...rows.map(({ policy, perSecond, workerMib }) =>
      [policyInWords(policy).padEnd(44), perSecond.toFixed(1).padStart(20), `${workerMib} MiB`.padStart(24)].join(' '),
    ),
    '',
    best === undefined
      ? `No minimum of argon2id has full batches in ${memoryMib} MiB a worker: give --memory more.`
      : `For the most logins, take ${policyInWords(best.policy)}: the minimums are equal in strength, and it is the fastest that fits into ${memoryMib} MiB a worker. What is proposed above is stronger and slower.`,
  ]
}

function memoryOf(policy: HashPolicy): number {
  return policy.algorithm === 'argon2id' ? policy.memoryKib : 0
}

export function policyInWords(policy: HashPolicy): string {
  if (policy.algorithm === 'bcrypt') return `bcrypt, cost ${policy.cost}`
  return `argon2id, ${policy.memoryKib / 1_024} MiB, ${policy.time === 1 ? '1 pass' : `${policy.time} passes`}, 1 lane`
}
