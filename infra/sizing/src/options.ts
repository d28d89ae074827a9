// The demand as it is given on the command line.
import { parseArgs } from 'node:util'
import { UserError } from '@spillway/local/processes/user-error'
import type { Figures } from './figures.ts'
import type { Demand } from './sizing.ts'

export const usage = `pnpm size --logins-per-second 500 --p99-wait 1s

  --logins-per-second N   at the busiest time of an ordinary day
  --p99-wait TIME         what 99 of 100 logins wait for a slot at most, as 250ms or 1s [1s]
  --hash TIME             what a hash takes on a core of your workers [as measured, at the default cost]
  --cores-per-worker N    the chart's worker.cores [1]
  --spike N               how many times as many logins a spike brings [10]
  --spike-length TIME     how long it lasts [60s]
  --scale-time TIME       from a spike's start until the workers it asks for hash [30s]`

/** Reads the arguments; what is not given comes from the figures or is the default. Throws a UserError that says what is wrong. */
export function readDemand(args: string[], figures: Figures): Demand {
  const given = parse(args)
  const logins = given['logins-per-second']
  if (logins === undefined) throw new UserError(`Say how many logins a second: ${usage}`)
  return {
    loginsPerSecond: positive('logins-per-second', logins),
    p99WaitMs: milliseconds('p99-wait', given['p99-wait'] ?? '1s'),
    hashMs: given.hash === undefined ? figures.hashMs : milliseconds('hash', given.hash),
    coresPerWorker: whole('cores-per-worker', given['cores-per-worker'] ?? '1'),
    spike: positive('spike', given.spike ?? '10'),
    spikeS: milliseconds('spike-length', given['spike-length'] ?? '60s') / 1_000,
    scaleS: milliseconds('scale-time', given['scale-time'] ?? '30s') / 1_000,
  }
}

const names = [
  'logins-per-second',
  'p99-wait',
  'hash',
  'cores-per-worker',
  'spike',
  'spike-length',
  'scale-time',
] as const

function parse(args: string[]): Partial<Record<(typeof names)[number], string>> {
  try {
    const options = Object.fromEntries(names.map((name) => [name, { type: 'string' as const }]))
    return parseArgs({ args: args.filter((arg) => arg !== '--'), options, strict: true }).values
  } catch (cause) {
    throw new UserError(`${cause instanceof Error ? cause.message : cause}\n${usage}`, { cause })
  }
}

function positive(name: string, text: string): number {
  const value = Number(text)
  if (Number.isFinite(value) && value > 0) return value
  throw new UserError(`--${name} must be a number above 0, not "${text}".`)
}

function whole(name: string, text: string): number {
  if (Number.isInteger(Number(text))) return positive(name, text)
  throw new UserError(`--${name} must be a whole number, not "${text}".`)
}

function milliseconds(name: string, text: string): number {
  const [, number, unit] = /^([\d.]+)(ms|s|m)$/.exec(text) ?? []
  if (number === undefined || unit === undefined)
    throw new UserError(`--${name} must be a time such as 250ms or 1s, not "${text}".`)
  return positive(name, number) * (unit === 'ms' ? 1 : unit === 's' ? 1_000 : 60_000)
}
