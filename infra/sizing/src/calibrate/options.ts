// The options of `pnpm calibrate`, which `pnpm size --calibrate` takes too.
import { milliseconds, parseCommandLine, whole } from '@spillway/local/processes/command-line'
import { UserError } from '@spillway/local/processes/user-error'

/** For both commands; how each of them is called comes before. */
export const calibrationUsage = `  --target TIME           what a hash may take on a core, as 50ms [50ms]
  --memory SIZE           the memory of a worker, as 512Mi or 1Gi [256Mi, as in the chart]
  --algorithm NAME        argon2id or bcrypt [argon2id]`

export const usage = `pnpm calibrate --target 50ms --memory 512Mi

Proposes algorithm and cost of new hashes for workers on machines like this one, and what they cost in logins a second. It never goes below
OWASP's minimum.

${calibrationUsage}
  --cores-per-worker N    the chart's worker.cores [1]
  --help                  prints this

From the environment:

  HASH_ENGINE             of the workers: native or packages [native, if it has been built]
`

export const calibrationOptions = {
  target: { type: 'string', default: '50ms' },
  memory: { type: 'string', default: '256Mi' },
  algorithm: { type: 'string', default: 'argon2id' },
} as const

export interface CalibrationOptions {
  targetMs: number
  /** Of a worker. */
  memoryMib: number
  coresPerWorker: number
  algorithm: 'argon2id' | 'bcrypt'
}

/** Undefined when help is asked for. Throws a UserError for a wrong one. */
export function readCalibration(args: readonly string[]): CalibrationOptions | undefined {
  const { values } = parseCommandLine('pnpm calibrate', args, {
    ...calibrationOptions,
    'cores-per-worker': { type: 'string', default: '1' },
  })
  if (values.help) return undefined
  return calibrationOf(values, whole('--cores-per-worker', values['cores-per-worker']))
}

export function calibrationOf(
  { target, memory, algorithm }: Record<keyof typeof calibrationOptions, string>,
  coresPerWorker: number,
): CalibrationOptions {
  if (algorithm !== 'argon2id' && algorithm !== 'bcrypt')
    throw new UserError(`--algorithm takes argon2id or bcrypt, not "${algorithm}".`)
  return {
    targetMs: milliseconds('--target', target),
    memoryMib: mebibytes('--memory', memory),
    coresPerWorker,
    algorithm,
  }
}

function mebibytes(option: string, text: string): number {
  const [, number = '', unit] = /^([1-9]\d{0,6})(Mi|Gi)$/.exec(text) ?? []
  if (unit === undefined) throw new UserError(`${option} takes a size such as 512Mi or 1Gi, not "${text}".`)
  return Number(number) * (unit === 'Gi' ? 1_024 : 1)
}
