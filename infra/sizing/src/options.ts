// The command line of `pnpm size`.
import { milliseconds, parseCommandLine, positive, UserError, whole } from '@spillway/infra/processes/command-line'
import type { Demand } from './sizing.ts'

export const usage = `pnpm size --logins-per-second 500 --p99-wait 1s
pnpm size --calibrate --target 50ms --memory 512Mi

Says how many pods a number of logins needs. With --calibrate it proposes algorithm and cost of new hashes for workers on machines like this
one, says what they cost, and sizes by them. It never goes below OWASP's minimum.

  --logins-per-second N   at the busiest time of an ordinary day
  --p99-wait TIME         what 99 of 100 logins wait for a slot at most, as 250ms or 1s [1s]
  --hash TIME             what a hash takes on a core of your workers [as measured, at the default cost]
  --calibrate             measures a hash on this machine, at a cost that it proposes; without --logins-per-second this alone
  --target TIME           what a hash may take on a core, as 50ms [50ms]
  --memory SIZE           the memory of a worker, as 512Mi or 1Gi [256Mi, as in the chart]
  --algorithm NAME        argon2id or bcrypt [argon2id]
  --cores-per-worker N    the chart's worker.cores [1]
  --spike N               how many times as many logins a spike brings [10]
  --spike-length TIME     how long it lasts [60s]
  --scale-time TIME       from a spike's start until the workers it asks for hash [30s]
  --help                  prints this

From the environment:

  HASH_ENGINE             of the workers: native or packages [native, if it has been built]`

const options = {
  'logins-per-second': { type: 'string' },
  'p99-wait': { type: 'string', default: '1s' },
  hash: { type: 'string' },
  calibrate: { type: 'boolean' },
  target: { type: 'string', default: '50ms' },
  memory: { type: 'string', default: '256Mi' },
  algorithm: { type: 'string', default: 'argon2id' },
  'cores-per-worker': { type: 'string', default: '1' },
  spike: { type: 'string', default: '10' },
  'spike-length': { type: 'string', default: '60s' },
  'scale-time': { type: 'string', default: '30s' },
} as const

type SizeOptions = Exclude<ReturnType<typeof parseOptions>, undefined>

/** Undefined when help is asked for. */
export function parseOptions(args: readonly string[]) {
  const { values } = parseCommandLine('pnpm size', args, options)
  if (values.help) return undefined
  const { 'logins-per-second': logins, hash } = values
  if (logins === undefined && !values.calibrate) throw new UserError(`Say how many logins a second: ${usage}`)
  if (values.calibrate && hash !== undefined) throw new UserError('Give --hash or --calibrate, not both.')
  const coresPerWorker = whole('--cores-per-worker', values['cores-per-worker'])
  return {
    calibration: values.calibrate ? calibrationOf(values, coresPerWorker) : undefined,
    hashMs: hash === undefined ? undefined : milliseconds('--hash', hash),
    /** Undefined where a cost is to be proposed, and no more. */
    demand:
      logins === undefined
        ? undefined
        : {
            loginsPerSecond: positive('--logins-per-second', logins),
            p99WaitMs: milliseconds('--p99-wait', values['p99-wait']),
            coresPerWorker,
            spike: positive('--spike', values.spike),
            spikeS: milliseconds('--spike-length', values['spike-length']) / 1_000,
            scaleS: milliseconds('--scale-time', values['scale-time']) / 1_000,
          },
  }
}

/** Undefined where there is a cost to propose alone. */
export function demandOf(
  { demand, hashMs }: SizeOptions,
  otherwise: Pick<Demand, 'hashMs' | 'hashSource'>,
): Demand | undefined {
  if (demand === undefined) return undefined
  const hash = hashMs === undefined ? otherwise : { hashMs, hashSource: 'The time of a hash is as given by --hash.' }
  return { ...demand, ...hash }
}

export interface CalibrationOptions {
  targetMs: number
  memoryMib: number
  coresPerWorker: number
  algorithm: 'argon2id' | 'bcrypt'
}

function calibrationOf(
  { target, memory, algorithm }: Record<'target' | 'memory' | 'algorithm', string>,
  coresPerWorker: number,
): CalibrationOptions {
  if (algorithm !== 'argon2id' && algorithm !== 'bcrypt')
    throw new UserError(`--algorithm takes argon2id or bcrypt, not "${algorithm}".`)
  const targetMs = milliseconds('--target', target)
  return { targetMs, memoryMib: mebibytes('--memory', memory), coresPerWorker, algorithm }
}

function mebibytes(option: string, text: string): number {
  const [, number = '', unit] = /^([1-9]\d{0,6})(Mi|Gi)$/.exec(text) ?? []
  if (unit === undefined) throw new UserError(`${option} takes a size such as 512Mi or 1Gi, not "${text}".`)
  return Number(number) * (unit === 'Gi' ? 1_024 : 1)
}
