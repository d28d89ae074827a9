/**
 * Upgrades stored hashes after a login. The result announces a new hash, the login is answered, and
 * the new hash is stored when it arrives. If it is lost, the next login makes another one.
 */

import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import { type JobRef, type PasswordClient, PasswordClientError } from '@spillway/queue/client'
import { upgradeOf } from '@spillway/queue/wire/reply'
import type { RehashMode } from '@spillway/queue/wire/stored-hash'
import type { FastifyBaseLogger } from 'fastify'

/** The most new hashes to wait for: slow workers must not fill the memory of a gateway. */
const FOLLOWED_MAX = 1_000

interface HashUpgradesOptions {
  passwords: PasswordClient
  database: Database
  mode: RehashMode
  log: FastifyBaseLogger
}

export class HashUpgrades {
  readonly #options: HashUpgradesOptions
  readonly #followed = new Set<Promise<void>>()
  readonly #closing = new AbortController()
  /** Fields of the verify request of a login. */
  readonly request: { rehash: false } | { upgrade: RehashMode }

  constructor(options: HashUpgradesOptions) {
    const { mode } = options
    this.#options = options
    this.request = mode === 'never' ? { rehash: false } : { upgrade: mode }
  }

  /** Stores the new hash of a job, if the digest of the stored hash is still `verified`. Never throws. */
  follow(job: JobRef, over: { userId: string; verified: string }): void {
    if (this.#followed.size >= FOLLOWED_MAX || this.#closing.signal.aborted) return
    const stored = this.#store(job, over)
      .catch((error: unknown) => {
        const isClosed = error instanceof PasswordClientError && error.code === 'wait_aborted'
        const message = 'a new hash was not stored: the next login makes another'
        if (!isClosed) this.#options.log.warn({ err: error, jobId: job.id }, message)
      })
      .finally(() => this.#followed.delete(stored))
    this.#followed.add(stored)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.all(this.#followed)
  }

  async #store(job: JobRef, { userId, verified }: { userId: string; verified: string }): Promise<void> {
    const { passwords, database } = this.#options
    const waitMs = Math.max(0, job.deadline - passwords.now())
    const expected = await passwords.resume(upgradeOf(job))
    const result = await expected.result(waitMs, this.#closing.signal)
    if (typeof result !== 'object' || result.kind !== 'hashed') return
    // A change of the password or another login may have replaced the hash meanwhile.
    const sql = Prisma.sql`
      UPDATE users SET password_hash = ${result.hash}, updated_at = now()
      WHERE id = ${userId}::uuid AND encode(sha256(convert_to(password_hash, 'UTF8')), 'base64') = ${verified}`
    await rawQuery(database, sql)
  }
}
