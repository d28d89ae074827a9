// The two hashes of the rivals: Spillway's costs, by the fastest packages. Both run on libuv's
// threads, as the packages `argon2` and `bcrypt` do.

import { hash as argon2Hash, verify as argon2Verify } from '@node-rs/argon2'
import { hash as bcryptHash, verify as bcryptVerify } from '@node-rs/bcrypt'

export const algorithms = ['bcrypt', 'argon2id'] as const
export type Algorithm = (typeof algorithms)[number]

export const BCRYPT_COST = 10
/** argon2id is the default algorithm of the package. */
export const ARGON2_COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

/** Passes of a dear argon2id hash: four times the usual, so that few people exceed the capacity. */
export const DEAR_PASSES = 8

/** How an algorithm and its cost are written in settings and reports. */
export const costOf: Record<Algorithm, string> = { bcrypt: 'cost 10', argon2id: 'm=19456 KiB, t=2, p=1' }

export function hash(password: string, algorithm: Algorithm | 'dear'): Promise<string> {
  if (algorithm === 'dear') return argon2Hash(password, { ...ARGON2_COST, timeCost: DEAR_PASSES })
  return algorithm === 'bcrypt' ? bcryptHash(password, { cost: BCRYPT_COST }) : argon2Hash(password, ARGON2_COST)
}

/** Whether a password is the hashed one; the algorithm is read from the hash. */
export async function verify(password: string, storedHash: string): Promise<boolean> {
  return storedHash.startsWith('$argon2') ? argon2Verify(storedHash, password) : bcryptVerify(password, storedHash)
}

export interface Hashing {
  hash(password: string, algorithm: Algorithm): Promise<string>
  verify(password: string, storedHash: string): Promise<boolean>
}

/** One piece of hashing as it travels to another thread, process or machine. */
export type HashingTask =
  | { kind: 'hash'; password: string; algorithm: Algorithm }
  | { kind: 'verify'; password: string; storedHash: string }

/** Carries out a task: a string for a hash, a boolean for a verify. */
export function perform(task: HashingTask): Promise<string | boolean> {
  return task.kind === 'hash' ? hash(task.password, task.algorithm) : verify(task.password, task.storedHash)
}

/** Hashing by tasks that {@link perform} carries out elsewhere. */
export function byTasks(run: (task: HashingTask) => Promise<unknown>): Hashing {
  return {
    hash: async (password, algorithm) => String(await run({ kind: 'hash', password, algorithm })),
    verify: async (password, storedHash) => (await run({ kind: 'verify', password, storedHash })) === true,
  }
}
