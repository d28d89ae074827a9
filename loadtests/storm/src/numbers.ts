// The numbers of a storm's command line, with their defaults and bounds, for help and for reading them.

interface NumberOption {
  initial: number
  least?: number
  most: number
  says: string
}

const numbers = {
  users: { initial: 100, most: 5_000, says: 'users who log in at the same time, each on a connection of their own' },
  duration: { initial: 10, most: 60, says: 'seconds in which logins begin; those that are open then are waited for' },
  rate: { initial: 40, most: 100, says: 'times a second that each probe is asked' },
  p99: { initial: 100, most: 30_000, says: 'milliseconds that a probe may take at p99 during the storm' },
  timeout: { initial: 10, most: 30, says: 'seconds until a request is given up' },
  calm: { initial: 5, most: 60, says: 'seconds that probes are measured before the storm' },
  after: { initial: 10, most: 60, says: 'seconds to wait, at the most, until probes are as quick as before' },
} satisfies Record<string, NumberOption>

type Name = keyof typeof numbers

export const PROBES_MAX = 8

/** A default, as it would be typed. */
export const defaultOf = (name: Name): string => String(numbers[name].initial)

/** A line for each. */
export const numberHelp: string = Object.entries(numbers)
  .map(([name, { initial, most, says }]) => `  ${`--${name} n`.padEnd(23)}${says}, at most ${most} [${initial}]`)
  .join('\n')

/** @throws {@link UsageError} for what is no whole number within the bounds of this option */
export function bound(name: Name, text: string): number {
  return countOf(`--${name}`, text, numbers[name])
}

/** @throws {@link UsageError} for what is no whole number within bounds */
export function countOf(
  option: string,
  text: string,
  { least = 1, most }: Pick<NumberOption, 'least' | 'most'>,
): number {
  const value = Number(text)
  if (/^\d{1,9}$/.test(text) && value >= least && value <= most) return value
  throw new UsageError(`${option} takes a whole number from ${least} to ${most}.`)
}

/**
 * Printed as one sentence, without a stack. It may quote names of options, methods and paths, never a body, a header or what stands
 * alone on the command line: those may hold a password.
 */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
