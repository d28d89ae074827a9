// Values of command lines, checked one by one.

/** What is wrong with the command line, and the way out, in one sentence. */
export class BadOption extends Error {
  override readonly name = 'BadOption'
}

export function pick<T extends { name: string }>(kind: string, all: readonly T[], name: string): T {
  const found = all.find((one) => one.name === name)
  if (found) return found
  throw new BadOption(`There is no ${kind} "${name}": choose from ${all.map((one) => one.name).join(', ')}.`)
}

export function positive(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (value > 0 && Number.isFinite(value)) return value
  throw new BadOption(`${option} takes a number greater than 0, not "${text}".`)
}

export function whole(option: string, text: string): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1) return value
  throw new BadOption(`${option} takes a whole number of at least 1, not "${text}".`)
}

export function atMost(option: string, value: number, most: number): number {
  if (value <= most) return value
  throw new BadOption(`${option} takes at most ${most} with a --target, not "${value}".`)
}
