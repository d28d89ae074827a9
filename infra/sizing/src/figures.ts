// What one login costs, measured by `pnpm --filter @spillway/sizing run measure` on the machine that the file names.
import { existsSync, readFileSync } from 'node:fs'
import { UserError } from '@spillway/local/processes/user-error'

export interface Figures {
  machine: string
  measuredAt: string
  /** Processor time of one login, in milliseconds, by who spends it; the hash itself is apart. */
  costMs: { gateway: number; worker: number; redis: number; postgres: number }
  /** Processor time of one argon2id hash at the default cost (19 MiB, 2 passes, 1 lane), in milliseconds. */
  hashMs: number
  /** What a slot is kept for beyond a hash, in milliseconds: from the end of one to the start of the next. */
  turnaroundMs: number
  /** What one job that waits takes in Redis, in bytes. */
  jobBytes: number
  /** What a gateway and a worker take when idle, in MiB. */
  memoryMib: { gateway: number; worker: number }
  /** Measurements that README.md compares with the model. */
  checks: WaitCheck[]
  spike: SpikeCheck
}

/** Rates are those that were, not those that were meant; slotMs is the hash, with the turnaround that was measured before. */
export interface WaitCheck {
  perSecond: number
  slotMs: number
  slots: number
  logins: number
  measuredMs: { p50: number; p99: number }
}

export interface SpikeCheck {
  perSecond: number
  spikePerSecond: number
  spikeS: number
  slotMs: number
  slots: number
  measured: { deepest: number; longestWaitS: number; overAfterS: number }
}

export const figuresFile = new URL('../figures.json', import.meta.url)

/** Reads them. Rejects what has not been measured yet with a UserError. */
export function readFigures(): Figures {
  if (!existsSync(figuresFile)) {
    throw new UserError('There are no figures to size by yet: run `pnpm --filter @spillway/sizing run measure` first.')
  }
  return JSON.parse(readFileSync(figuresFile, 'utf8'))
}
