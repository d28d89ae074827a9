// The cost of one login, as it was measured on the machine that figures.json names.
import { readFileSync } from 'node:fs'
import type { HashPolicy } from '@spillway/queue/wire/policy'

/** With every slot busy with full batches. */
export interface BusyCost {
  policy: HashPolicy
  /** Processor time, in milliseconds. */
  fullMs: number
  /** Hashes that a slot makes at a time. */
  width: number
}

export interface Figures {
  machine: string
  measuredAt: string
  /** Processor time of one login without its hash, in milliseconds, by process. */
  costMs: { gateway: number; worker: number; redis: number; postgres: number }
  hashEngine: string
  /** Processor time of an argon2id hash at the default cost (19 MiB, 2 passes, 1 lane), in ms. */
  hashMs: number
  /** The time of a slot from the end of a hash to the start of the next, in milliseconds. */
  turnaroundMs: number
  jobBytes: number
  memoryMib: { gateway: number; worker: number }
  minimums: { machine: string; measuredAt: string; slots: number; costs: BusyCost[] }
}

export const figures: Figures = JSON.parse(readFileSync(new URL('../figures.json', import.meta.url), 'utf8'))

export function sourceOf({ machine, hashEngine, measuredAt }: Figures): string {
  return `The time of a hash is of ${machine.split(',', 1)[0]}, by ${hashEngine}, measured on ${measuredAt}: --calibrate measures it here.`
}
