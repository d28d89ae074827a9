// The implementations of the two hashes that a worker may find, each at the cost used everywhere here.
import argon2 from 'argon2'
import bcrypt from 'bcrypt'
import { ARGON2_COST, BCRYPT_COST, type Hashing, hash, verify } from '../contenders/hashing.ts'

/** By the name of the package, the one in common use first. */
export const engines: Readonly<Record<string, { hash(password: string): Promise<string>; verify: Hashing['verify'] }>> =
  {
    argon2: {
      hash: (password) => argon2.hash(password, { ...ARGON2_COST, type: argon2.argon2id }),
      verify: (password, storedHash) => argon2.verify(storedHash, password),
    },
    '@node-rs/argon2': { hash: (password) => hash(password, 'argon2id'), verify },
    bcrypt: { hash: (password) => bcrypt.hash(password, BCRYPT_COST), verify: bcrypt.compare },
    '@node-rs/bcrypt': { hash: (password) => hash(password, 'bcrypt'), verify },
  }
