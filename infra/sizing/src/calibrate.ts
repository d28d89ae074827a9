// Proposes a policy for workers on machines like this one, and describes it in lines.

import { UserError } from '@spillway/infra/processes/command-line'
import type { HashPolicy } from '@spillway/queue/wire/policy'
import { policySettings } from '@spillway/worker/hashing/policy'
import { PROGRAM_KIB } from '@spillway/worker/hashing/threads'
import type { Figures } from './figures.ts'
import { DEFAULT_POLICY, type HashCost, type MeasureHash, openHashMeter } from './hash-meter.ts'
import {
  argon2id,
  describeMinimums,
  measureMinimums,
  OWASP_ARGON2_KIB,
  OWASP_BCRYPT_COST,
  policyInWords,
} from './minimums.ts'
import type { CalibrationOptions } from './options.ts'

interface Calibration extends Proposal {
  options: CalibrationOptions
  engine: string
  /** The memory that a hash may take, and how many a core holds at a time. */
  memoryKib: number
  width: number
  minimums: Awaited<ReturnType<typeof measureMinimums>>
  slots: number
}

/** Takes some twenty seconds. Throws a UserError when there is too little memory. */
export async function calibrate(options: CalibrationOptions, env: NodeJS.ProcessEnv): Promise<Calibration> {
  const meter = await openHashMeter({ native: env.HASH_ENGINE !== 'packages' })
  try {
    const { targetMs, algorithm } = options
    const width = meter.widthOf(DEFAULT_POLICY)
    // As a worker shares it out: for each slot, and for what packages hash.
    const shares = options.coresPerWorker + 1
    const memoryKib = (options.memoryMib * 1_024 - PROGRAM_KIB) / shares / width
    if (algorithm === 'argon2id' && memoryKib < LEAST_MEMORY_KIB) {
      const leastMib = Math.ceil((PROGRAM_KIB + LEAST_MEMORY_KIB * shares * width) / 1_024)
      throw new UserError(`--memory is too little for OWASP's minimum: it must be ${leastMib}Mi or more.`)
    }
    const limits = { targetMs, memoryKib }
    const propose = algorithm === 'bcrypt' ? proposeBcrypt : proposeArgon2id
    const proposal = await propose(limits, meter.measure)
    const minimums = await measureMinimums(meter)
    return { ...proposal, options, engine: meter.engine(algorithm), memoryKib, width, minimums, slots: meter.slots }
  } finally {
    meter.close()
  }
}

export function describeCalibration(calibration: Calibration, figures: Figures): string {
  const { options, policy, aloneMs, fullMs, isOverTarget, engine, memoryKib, width, minimums, slots } = calibration
  const perSecond = 1_000 / (fullMs + figures.turnaroundMs)
  const { coresPerWorker } = options
  const memory = `${Math.floor(memoryKib / 1_024)} MiB for each of ${width} at a time on a core`
  return [
    `${policyInWords(policy)}, by ${engine}`,
    ...(policy.algorithm === 'bcrypt' ? [] : [`memory       ${memory}, of ${options.memoryMib} MiB a worker`]),
    `a login      ${ms(aloneMs)} alone, ${ms(fullMs)} of a core with all cores busy`,
    `a worker     ${(perSecond * coresPerWorker).toFixed(1)} logins a second (${coresPerWorker === 1 ? '1 core' : `${coresPerWorker} cores`})`,
    ...(isOverTarget
      ? ['', `This is OWASP's minimum. It takes longer than the target of ${ms(options.targetMs)}.`]
      : []),
    '',
    ...settings(policy),
    '',
    ...describeMinimums(minimums, slots, options, figures),
  ].join('\n')
}

function settings(policy: Proposal['policy']): string[] {
  if (policy.algorithm === 'bcrypt') return ['HASH_ALGORITHM=bcrypt', `BCRYPT_COST=${policy.cost}`]
  const { memoryKib, time, parallelism } = policy
  return [
    'HASH_ALGORITHM=argon2id',
    `ARGON2_MEMORY_KIB=${memoryKib}`,
    `ARGON2_TIME=${time}`,
    `ARGON2_PARALLELISM=${parallelism}`,
  ]
}

function ms(value: number): string {
  return `${value.toFixed(1)} ms`
}

export interface Limits {
  targetMs: number
  memoryKib: number
}

interface Proposal extends HashCost {
  policy: HashPolicy
  /** Whether even OWASP's minimum takes longer than the target. */
  isOverTarget: boolean
}

/** The least memory with which argon2id may be used at all. */
const LEAST_MEMORY_KIB = OWASP_ARGON2_KIB[4]

const MEMORY_MOST_KIB = policySettings.ARGON2_MEMORY_KIB.maximum
const TIME_MOST = policySettings.ARGON2_TIME.maximum
const BCRYPT_COST_MOST = policySettings.BCRYPT_COST.maximum

const MIB = 1_024
/** Costs that are measured until one fits. */
const ROUNDS = 6
/** Measurements of the same cost differ by so much. */
const TOLERANCE = 1.03

/**
 * RFC 9106, 4: the memory that each hash can afford, then as many passes as the time allows; where
 * even one takes too long, less memory. One lane, because the other cores hash other passwords.
 * `memoryKib` is {@link LEAST_MEMORY_KIB} at least.
 */
export async function proposeArgon2id({ targetMs, memoryKib }: Limits, measure: MeasureHash): Promise<Proposal> {
  const mostKib = Math.min(wholeMib(memoryKib), MEMORY_MOST_KIB)
  const floor = floorWithin(mostKib)
  const least = await measured(floor, measure)
  let best = { ...least, isOverTarget: least.aloneMs > targetMs * TOLERANCE }
  let msOfWork = least.aloneMs / workOf(floor)
  let tooMuch = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS && !best.isOverTarget && best.aloneMs < targetMs / TOLERANCE; round++) {
    const guess = targetMs / msOfWork
    const isBetween = guess > workOf(best.policy) && guess < tooMuch
    // Time grows faster than memory where caches end: a guess that has been tried in another way is
    // halfway to what is known.
    const policy = largestWithin(isBetween ? guess : Math.sqrt(workOf(best.policy) * tooMuch), mostKib)
    if (policy === undefined || workOf(policy) <= workOf(best.policy) || workOf(policy) >= tooMuch) break
    const cost = await measured(policy, measure)
    if (cost.aloneMs <= targetMs * TOLERANCE) best = { ...cost, isOverTarget: false }
    else tooMuch = workOf(policy)
    msOfWork = cost.aloneMs / workOf(policy)
  }
  return best
}

/** The highest cost within the target. Each takes twice as long as the one below. */
export async function proposeBcrypt({ targetMs }: Pick<Limits, 'targetMs'>, measure: MeasureHash): Promise<Proposal> {
  const at = (cost: number) => measured({ algorithm: 'bcrypt', cost } as const, measure)
  let proposal = await at(OWASP_BCRYPT_COST)
  const isOverTarget = proposal.aloneMs > targetMs * TOLERANCE
  const steps = Math.floor(Math.log2((targetMs * TOLERANCE) / proposal.aloneMs))
  if (steps > 0) proposal = await at(Math.min(OWASP_BCRYPT_COST + steps, BCRYPT_COST_MOST))
  return { ...proposal, isOverTarget }
}

async function measured<Policy extends HashPolicy>(policy: Policy, measure: MeasureHash) {
  return { policy, ...(await measure(policy)) }
}

/** OWASP's minimum of the most memory that fits; two passes are what OWASP names first. */
function floorWithin(mostKib: number) {
  const time = OWASP_ARGON2_KIB.findIndex((kib, n) => n > 0 && kib <= mostKib)
  return argon2id(OWASP_ARGON2_KIB[time] ?? LEAST_MEMORY_KIB, time + 1)
}

/** @param work passes over a KiB that the time allows */
function largestWithin(work: number, mostKib: number) {
  for (let time = Math.max(1, Math.min(Math.floor(work / mostKib), TIME_MOST)); time <= TIME_MOST; time++) {
    const memoryKib = Math.min(mostKib, wholeMib(work / time))
    if (memoryKib >= leastKib(time)) return argon2id(memoryKib, time)
    if (memoryKib < LEAST_MEMORY_KIB) return undefined
  }
  return undefined
}

function leastKib(time: number): number {
  return OWASP_ARGON2_KIB[Math.min(time, OWASP_ARGON2_KIB.length) - 1] ?? LEAST_MEMORY_KIB
}

function workOf(policy: { memoryKib: number; time: number }): number {
  return policy.memoryKib * policy.time
}

function wholeMib(kib: number): number {
  return Math.floor(kib / MIB) * MIB
}
