// What `pnpm size --calibrate` is told.
import { milliseconds, UserError } from '@spillway/local/processes/command-line'

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
