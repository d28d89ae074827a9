// Figures as people read them.

const decimals = (value: number, digits: number) =>
  value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })

/** `2.4 ms`, `2,410 ms`, `≥ 10,000 ms` at the time limit; a dash without a measurement. */
export function milliseconds(value: number | undefined, timeoutS = Number.POSITIVE_INFINITY): string {
  if (value === undefined) return '–'
  if (value >= timeoutS * 1_000) return `≥ ${decimals(value, 0)} ms`
  return `${decimals(value, value < 9.95 ? 1 : 0)} ms`
}

export function seconds(value: number): string {
  const tenths = Math.round(value * 10) / 10
  return `${decimals(tenths, tenths < 10 && !Number.isInteger(tenths) ? 1 : 0)} s`
}

export function rate(perSecond: number): string {
  return decimals(perSecond, perSecond < 99.95 ? 1 : 0)
}

export function count(value: number): string {
  return decimals(value, 0)
}

/** `a`, `a and b`, `a, b and c`. */
export function list(parts: readonly string[]): string {
  const last = parts.at(-1) ?? ''
  return parts.length < 2 ? last : `${parts.slice(0, -1).join(', ')} and ${last}`
}
