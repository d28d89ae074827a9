// The implementations that a worker may find: of the two hashes of logins, each at the cost used everywhere here, and of those that
// accounts bring along.
import argon2 from 'argon2'
import bcrypt from 'bcrypt'
import { ARGON2_COST, BCRYPT_COST, type Hashing, hash, verify } from '../contenders/hashing.ts'
import { derivedKeys } from './derived-keys.ts'

export interface Implementation {
  hash(password: string): Promise<string>
  verify: Hashing['verify']
}

/** By the name of the package or of Node's function, the one in common use first. */
export const engines: Readonly<Record<string, Implementation>> = {
  argon2: {
    hash: (password) => argon2.hash(password, { ...ARGON2_COST, type: argon2.argon2id }),
    verify: (password, storedHash) => argon2.verify(storedHash, password),
  },
  '@node-rs/argon2': { hash: (password) => hash(password, 'argon2id'), verify },
  bcrypt: { hash: (password) => bcrypt.hash(password, BCRYPT_COST), verify: bcrypt.compare },
  '@node-rs/bcrypt': { hash: (password) => hash(password, 'bcrypt'), verify },
  'crypto.pbkdf2': derivedKeys.pbkdf2,
  'crypto.scrypt': derivedKeys.scrypt,
}
