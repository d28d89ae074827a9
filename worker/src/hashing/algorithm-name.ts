/** The algorithms of stored hashes, as labels of metrics. */
export const algorithmNames = [
  ...(['argon2id', 'argon2i', 'argon2d', 'bcrypt'] as const),
  ...(['pbkdf2', 'scrypt', 'digest', 'sha-crypt', 'yescrypt', 'phpass', 'wrapped', 'other'] as const),
] as const
export type AlgorithmName = (typeof algorithmNames)[number]
