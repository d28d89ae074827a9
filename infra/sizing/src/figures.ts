// The cost of one login, measured by `pnpm --filter @spillway/infra run measure` on the machine that the file names.
import { existsSync, readFileSync } from 'node:fs'
import { UserError } from '@spillway/infra/processes/command-line'
import type { Station } from './sizing.ts'
import type { SpikeCost } from './spike.ts'

export interface Figures {
  machine: string
  measuredAt: string
  /** Processor time of one login without its hash, in milliseconds, by process. */
  costMs: { gateway: number; worker: number; redis: number; postgres: number }
  /** The engine that made the hash. */
  hashEngine: string
  /** Processor time of one argon2id hash at the default cost (19 MiB, 2 passes, 1 lane), in milliseconds. */
  hashMs: number
  /** The time of a slot from the end of a hash to the start of the next, in milliseconds. */
  turnaroundMs: number
  /** The memory of a waiting job in Redis, in bytes. */
  jobBytes: number
  /** The memory of an idle gateway and of an idle worker, in MiB. */
  memoryMib: { gateway: number; worker: number }
  /** Measurements that README.md compares with the model. */
  checks: WaitCheck[]
  spike: SpikeCheck
}

/** The rate is the measured one; slotMs is the hash with the turnaround. */
export interface WaitCheck extends Station {
  logins: number
  measuredMs: { p50: number; p99: number }
}

export interface SpikeCheck extends Station {
  spikePerSecond: number
  spikeS: number
  measured: Pick<SpikeCost, 'deepest' | 'longestWaitS' | 'overAfterS'>
}

export const figuresFile = new URL('../figures.json', import.meta.url)

/** Says on which machine, by which engine and when the time of a hash was measured. */
export function sourceOf({ machine, hashEngine, measuredAt }: Figures): string {
  return `The time of a hash is of ${machine.split(',', 1)[0]}, by ${hashEngine}, measured on ${measuredAt}: --calibrate measures it here.`
}

/** Reads them. Throws a UserError if nothing has been measured yet. */
export function readFigures(): Figures {
  if (!existsSync(figuresFile)) {
    throw new UserError('There are no figures to size by yet: run `pnpm --filter @spillway/infra run measure` first.')
  }
  return JSON.parse(readFileSync(figuresFile, 'utf8'))
}
