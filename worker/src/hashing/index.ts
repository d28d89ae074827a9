/** Hashing by policy: which algorithm a stored hash belongs to, whether it is still good enough, and the decoy. */
import { randomBytes } from 'node:crypto'
import type { RefusalCode } from '../protocol/job.js'
import type { Policy, Verifier } from './algorithm.js'
import { createArgon2 } from './argon2.js'
import { createBcrypt } from './bcrypt.js'
import { testDoubles } from './testdoubles.js'

export interface Hasher {
  /** The implementation in use for each algorithm. */
  readonly engines: { argon2: string; bcrypt: string }
  hash(password: string): Promise<string>
  /** Throws {@link UnsupportedHashError} for a stored hash that no algorithm recognizes. */
  verify(password: string, storedHash: string): Promise<boolean>
  /** The work of {@link Hasher.verify} at today's cost; the password matches nothing. */
  decoy(password: string): Promise<void>
  isBelow(storedHash: string): boolean
}

/** A stored hash that cannot be verified: another algorithm, damaged, or asking for too much. */
export class UnsupportedHashError extends Error {
  override readonly name = 'UnsupportedHashError'
  readonly code: RefusalCode = 'unsupported_hash'
}

/** Loads and tests the implementations; throws when an algorithm has none that works here. */
export async function createHasher(policy: Policy, options: { testHashes: boolean }): Promise<Hasher> {
  const [argon2, bcrypt] = await Promise.all([createArgon2(policy), createBcrypt()])
  const verifiers = [argon2, bcrypt, ...(options.testHashes ? testDoubles : [])]
  const decoyHash = argon2Decoy(policy)

  function verifierOf(storedHash: string): Verifier {
    const verifier = verifiers.find((candidate) => candidate.recognizes(storedHash))
    if (verifier === undefined) throw new UnsupportedHashError('the stored hash is of no supported algorithm or cost')
    return verifier
  }

  return {
    engines: { argon2: argon2.engine, bcrypt: bcrypt.engine },
    hash: argon2.hash,
    verify: async (password, storedHash) => verifierOf(storedHash).verify(password, storedHash),
    decoy: async (password) => {
      await argon2.verify(password, decoyHash)
    },
    isBelow: (storedHash) => verifierOf(storedHash).isBelow(storedHash),
  }
}

/** A well-formed hash whose digest is random: to verify against it costs the same, and no password is known to match. */
function argon2Decoy({ memoryKib, time, parallelism }: Policy): string {
  const random = (bytes: number) => randomBytes(bytes).toString('base64').replace(/=+$/, '')
  return `$argon2id$v=19$m=${memoryKib},t=${time},p=${parallelism}$${random(16)}$${random(32)}`
}
