/**
 * Notices one password that fails on many accounts. Counted in this process alone, in buckets of a digest. Its key is new for each window
 * and never leaves the process: neither Redis nor a log holds anything derived from a password.
 */
import { createHmac, randomBytes } from 'node:crypto'

const WINDOW_MS = 600_000
/** So many accounts that fail by one password within a window are not a coincidence. */
const ACCOUNTS = 50
const BUCKETS = 2 ** 24
/** Of one window, in all buckets; more are not looked at, so that an attack takes no memory. */
const ENTRIES_MAX = 50_000

export class SprayedPasswords {
  readonly #nowMs: () => number
  #key = randomBytes(32)
  #endsMs: number
  #entries = 0
  #accounts = new Map<number, Set<string>>()

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
    this.#endsMs = nowMs() + WINDOW_MS
  }

  /** Counts a failure. True once in a window for each password that failed on so many accounts. */
  failed(password: string, account: string): boolean {
    if (this.#nowMs() >= this.#endsMs) {
      this.#key = randomBytes(32)
      this.#endsMs = this.#nowMs() + WINDOW_MS
      this.#entries = 0
      this.#accounts = new Map()
    }
    const bucket = createHmac('sha256', this.#key).update(password).digest().readUInt32BE(0) % BUCKETS
    const tried = this.#accounts.get(bucket) ?? new Set()
    if (this.#entries >= ENTRIES_MAX || tried.has(account)) return false
    this.#entries++
    this.#accounts.set(bucket, tried.add(account))
    return tried.size === ACCOUNTS
  }
}
