// Calibrates: proposes a policy for workers on machines like this one, and describes it in lines.
import { UserError } from '@spillway/local/processes/command-line'
import { PROGRAM_KIB } from '@spillway/worker/hashing/memory-limit'
import type { Figures } from '../figures.ts'
import { openHashMeter } from '../measure/hash.ts'
import type { CalibrationOptions } from '../options.ts'
import { LEAST_MEMORY_KIB, type Proposal, proposeArgon2id, proposeBcrypt } from './propose.ts'

export interface Calibration extends Proposal {
  options: CalibrationOptions
  engine: string
  /** The memory that a hash may take, and how many a core holds at a time. */
  memoryKib: number
  width: number
}

/** Takes some ten seconds. Throws a UserError when there is too little memory. */
export async function calibrate(options: CalibrationOptions, env: NodeJS.ProcessEnv): Promise<Calibration> {
  const meter = await openHashMeter({ native: env.HASH_ENGINE !== 'packages' })
  try {
    const { targetMs, algorithm } = options
    const width = meter.argon2Width
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
    return { ...proposal, options, engine: meter.engine(algorithm), memoryKib, width }
  } finally {
    meter.close()
  }
}

export function describeCalibration(calibration: Calibration, { turnaroundMs }: Figures): string {
  const { options, policy, aloneMs, fullMs, isOverTarget, engine, memoryKib, width } = calibration
  const perSecond = 1_000 / (fullMs + turnaroundMs)
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
  ].join('\n')
}

export function policyInWords(policy: Proposal['policy']): string {
  if (policy.algorithm === 'bcrypt') return `bcrypt, cost ${policy.cost}`
  return `argon2id, ${policy.memoryKib / 1_024} MiB, ${policy.time === 1 ? '1 pass' : `${policy.time} passes`}, 1 lane`
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
