/** The algorithm of a stored hash, for metrics, by the identifier that the hash begins with. */

export const algorithmNames = ['argon2id', 'argon2i', 'argon2d', 'bcrypt', 'other'] as const
export type AlgorithmName = (typeof algorithmNames)[number]

/** Always one of a few names, so that it can be a metrics label. */
export function algorithmName(storedHash: string): AlgorithmName {
  const identifier = storedHash.split('$', 2)[1] ?? ''
  if (/^2[aby]$/.test(identifier)) return 'bcrypt'
  return algorithmNames.find((name) => name === identifier) ?? 'other'
}
