// The implementations that a worker may find: of the two hashes of logins, and of hashes that
// accounts bring along.
import { pbkdf2, randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import argon2 from 'argon2'
import bcrypt from 'bcrypt'
import { ARGON2_COST, BCRYPT_COST, type Hashing, hash, verify } from '../contenders/hashing.ts'

export interface Implementation {
  hash(password: string): Promise<string>
  verify: Hashing['verify']
}

// The hashes of accounts that move in, by node:crypto and as PHC strings, each at a usual cost.

/** ASP.NET Core Identity's; the default of crypto.scrypt. */
const ITERATIONS = 100_000
const LOG_COST = 14

const pbkdf2Key = promisify(pbkdf2)
const scryptKey = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt)

/** By the name of the package or of Node's function, the one in common use first. */
export const engines: Readonly<Record<string, Implementation>> = {
  argon2: {
    hash: (password) => argon2.hash(password, { ...ARGON2_COST, type: argon2.argon2id }),
    verify: (password, storedHash) => argon2.verify(storedHash, password),
  },
  '@node-rs/argon2': { hash: (password) => hash(password, 'argon2id'), verify },
  bcrypt: { hash: (password) => bcrypt.hash(password, BCRYPT_COST), verify: bcrypt.compare },
  '@node-rs/bcrypt': { hash: (password) => hash(password, 'bcrypt'), verify },
  'crypto.pbkdf2': implementation(`$pbkdf2-sha256$i=${ITERATIONS}`, (password, salt, bytes) =>
    pbkdf2Key(password, salt, ITERATIONS, bytes, 'sha256'),
  ),
  'crypto.scrypt': implementation(`$scrypt$ln=${LOG_COST},r=8,p=1`, (password, salt, bytes) =>
    scryptKey(password, salt, bytes, { N: 2 ** LOG_COST, r: 8, p: 1 }),
  ),
}

const unpadded = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')

type Derive = (password: string, salt: Buffer, bytes: number) => Promise<Buffer>

function implementation(setting: string, derive: Derive): Implementation {
  return {
    async hash(password) {
      const salt = randomBytes(16)
      return [setting, unpadded(salt), unpadded(await derive(password, salt, 32))].join('$')
    },
    async verify(password, storedHash) {
      const [salt = '', key = ''] = storedHash.split('$').slice(-2)
      const expected = Buffer.from(key, 'base64')
      return timingSafeEqual(await derive(password, Buffer.from(salt, 'base64'), expected.length), expected)
    },
  }
}
