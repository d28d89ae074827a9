// The figures that scenarios produce: the end of a name tells the unit and which way is better.

const kinds: readonly { ends: RegExp; unit: string; better: 'higher' | 'lower' }[] = [
  { ends: /persecond$/i, unit: '/s', better: 'higher' },
  { ends: /^(answered|efficiency|ideal|ofBullmq)Percent$/, unit: '%', better: 'higher' },
  { ends: /Percent$/, unit: '%', better: 'lower' },
  { ends: /Ms(Per[A-Z][a-z]+)?$/, unit: 'ms', better: 'lower' },
  { ends: /Mb$/, unit: 'MB', better: 'lower' },
]

/** The kind of a figure by the name in a JSON file; undefined for one this version does not know. */
export function figureKind(name: string) {
  return kinds.find(({ ends }) => ends.test(name))
}

/** A value as people read it: three digits, with a blank between thousands left to the locale. */
export function show(value: number): string {
  if (!Number.isFinite(value)) return '–'
  // A thousandth is not nothing.
  if (value !== 0 && Math.abs(value) < 0.1) return value.toLocaleString('en', { maximumSignificantDigits: 1 })
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toLocaleString('en', { minimumFractionDigits: 0, maximumFractionDigits: digits })
}
