/**
 * Upgrades of stored hashes after a login: the verdict says that a new hash follows, the login is
 * answered, and the hash is stored when it comes. A lost one is made again at the next login.
 */

import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import { type JobRef, type PasswordClient, PasswordClientError } from '@spillway/queue/queue-client'
import type { Requests } from '@spillway/queue/wire/job'
import { upgradeOf } from '@spillway/queue/wire/reply'
import type { RehashMode } from '@spillway/queue/wire/stored-hash'
import type { FastifyBaseLogger } from 'fastify'

/** New hashes that are waited for: a gateway must not grow while workers are behind. */
const FOLLOWED_MAX = 1_000

interface HashUpgradesOptions {
  passwords: Pick<PasswordClient, 'resume' | 'now'>
  database: Database
  mode: RehashMode
  log: FastifyBaseLogger
}

export class HashUpgrades {
  readonly #options: HashUpgradesOptions
  readonly #followed = new Set<Promise<void>>()
  readonly #closing = new AbortController()
  /** What the verify request of a login asks for. */
  readonly request: Pick<Requests['verify'], 'rehash' | 'upgrade'>

  constructor(options: HashUpgradesOptions) {
    const { mode } = options
    this.#options = options
    this.request = mode === 'never' ? { rehash: false } : { upgrade: mode }
  }

  /** Stores the new hash of a job over the one with this storedHashDigest. Never throws. */
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
    const waitMs = Math.max(0, job.deadline - passwords.now(job))
    const pending = await passwords.resume(upgradeOf(job), waitMs)
    const verdict = await pending.answer({ waitMs, signal: this.#closing.signal })
    if (typeof verdict !== 'object' || verdict.kind !== 'hashed') return
    // The hash may have been replaced meanwhile, by a change of the password or by another login.
    const sql = Prisma.sql`
      UPDATE users SET password_hash = ${verdict.hash}, updated_at = now()
      WHERE id = ${userId}::uuid AND encode(sha256(convert_to(password_hash, 'UTF8')), 'base64') = ${verified}`
    await rawQuery(database, sql)
  }
}
