/** The algorithms of stored hashes, as labels of metrics. */
export const algorithmNames = ['argon2id', 'argon2i', 'argon2d', 'bcrypt', 'pbkdf2', 'scrypt', 'ssha', 'other'] as const
export type AlgorithmName = (typeof algorithmNames)[number]
