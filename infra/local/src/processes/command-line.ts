// Command lines: Node's parser, and checks of single values. A mistake is a UserError.
import { type ParseArgsConfig, parseArgs } from 'node:util'

type Options = NonNullable<ParseArgsConfig['options']>

const help = { help: { type: 'boolean', short: 'h' } } as const

/**
 * Every command has --help, too. pnpm passes on the "--" of `pnpm load -- --rate 5`.
 * @param command as it is typed, for the error: `pnpm load`
 */
export function parseCommandLine<const T extends Options>(
  command: string,
  args: readonly string[],
  options: T,
  { allowPositionals = false } = {},
) {
  try {
    const given = args.filter((argument) => argument !== '--')
    return parseArgs({ args: given, allowPositionals, options: { ...options, ...help } })
  } catch (cause) {
    const message = cause instanceof Error ? cause.message.split(/\.( |$)|\n/)[0] : String(cause)
    throw new UserError(`${message}: see "${command} --help".`, { cause })
  }
}

/** A whole number within bounds, which the sentence names. */
export function whole(
  option: string,
  text: string,
  { least = 1, most }: { least?: number; most?: number } = {},
): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= least && value <= (most ?? Number.MAX_SAFE_INTEGER)) return value
  const bounds = most === undefined ? `of at least ${least}` : `from ${least} to ${most}`
  throw new UserError(`${option} takes a whole number ${bounds}, not "${text}".`)
}

export function positive(option: string, text: string): number {
  const value = Number(text)
  if (value > 0 && Number.isFinite(value)) return value
  throw new UserError(`${option} takes a number greater than 0, not "${text}".`)
}

export function milliseconds(option: string, text: string): number {
  const [, number = '', unit = ''] = /^([\d.]+)(ms|s|m)$/.exec(text) ?? []
  if (unit === '') throw new UserError(`${option} takes a time such as 250ms or 1s, not "${text}".`)
  return positive(option, number) * (unit === 'ms' ? 1 : unit === 's' ? 1_000 : 60_000)
}

/** Picks by name, or by the beginning of a name; all without a name. */
export function pickNamed<T extends { name: string }>(kind: string, all: readonly T[], names: readonly string[]) {
  if (names.length === 0) return all
  return names.flatMap((name) => {
    const exact = all.filter((one) => one.name === name)
    const found = exact.length > 0 ? exact : all.filter((one) => one.name.startsWith(name))
    if (name !== '' && found.length > 0) return found
    throw new UserError(`There is no ${kind} "${name}": choose from ${all.map((one) => one.name).join(', ')}.`)
  })
}

/** An expected failure. Its message names the problem and the way out. */
export class UserError extends Error {
  override name = 'UserError'
}

export function report(error: unknown): void {
  console.error(error instanceof UserError ? error.message : error)
}
