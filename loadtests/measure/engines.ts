// The implementations of the two hashes that a worker may find, each at the cost used everywhere here.
import { hash as nodeRsArgon2Hash, verify as nodeRsArgon2Verify } from '@node-rs/argon2'
import { hash as nodeRsBcryptHash, verify as nodeRsBcryptVerify } from '@node-rs/bcrypt'
import argon2 from 'argon2'
import bcrypt from 'bcrypt'
import { ARGON2_COST, BCRYPT_COST } from '../contenders/hashing.ts'

export interface Engine {
  hash(password: string): Promise<string>
  verify(password: string, storedHash: string): Promise<boolean>
}

/** By the name of the package, the one in common use first. */
export const engines: Readonly<Record<string, Engine>> = {
  argon2: {
    hash: (password) => argon2.hash(password, { ...ARGON2_COST, type: argon2.argon2id }),
    verify: (password, storedHash) => argon2.verify(storedHash, password),
  },
  '@node-rs/argon2': {
    hash: (password) => nodeRsArgon2Hash(password, ARGON2_COST),
    verify: (password, storedHash) => nodeRsArgon2Verify(storedHash, password),
  },
  bcrypt: {
    hash: (password) => bcrypt.hash(password, BCRYPT_COST),
    verify: (password, storedHash) => bcrypt.compare(password, storedHash),
  },
  '@node-rs/bcrypt': {
    hash: (password) => nodeRsBcryptHash(password, { cost: BCRYPT_COST }),
    verify: (password, storedHash) => nodeRsBcryptVerify(password, storedHash),
  },
}
