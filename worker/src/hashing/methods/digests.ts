/** Digests that programs of this repository compute, and weak digests inside argon2. */
import { timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Threads } from '../threads.js'
import { computeDigest, type DigestProgram, type DigestRequest, encodeCrypt64, roundsOf } from './digest-programs.js'
import type { Argon2Recipe, DigestEncoding, DigestRecipe, Method, Password, WrappedRecipe } from './recipe.js'

/** The limit of phpass and Drupal: each round reads the whole password. */
const PASSWORD_MAX_BYTES = 4_096
/** This many rounds take less time than a message to another thread. */
const ROUNDS_IN_PLACE = 10

export function digests(threads: DigestThreads): Method<DigestRecipe> {
  return {
    family: 'digest',
    engine: 'node:crypto',
    async verify(password, { program, text, encoding }) {
      if (Buffer.byteLength(password) > PASSWORD_MAX_BYTES) return false
      const made = Buffer.from(encode(await threads.compute(program, password), encoding))
      const expected = Buffer.from(text)
      // Drupal truncates its digest.
      if (expected.length === 0 || made.length < expected.length) return false
      return timingSafeEqual(made.subarray(0, expected.length), expected)
    },
  }
}

export function wrapped(threads: DigestThreads, argon2: Method<Argon2Recipe>): Method<WrappedRecipe> {
  return {
    family: 'wrapped',
    engine: argon2.engine,
    async verify(password, { inner, outer }, signal) {
      const isTooLong = Buffer.byteLength(password) > PASSWORD_MAX_BYTES
      const digest = isTooLong ? Buffer.alloc(0) : await threads.compute(inner, password)
      return await argon2.verify(digest.toString('hex'), outer, signal)
    },
  }
}

function encode(bytes: Buffer, encoding: DigestEncoding): string {
  return encoding === 'crypt64' ? encodeCrypt64(bytes) : bytes.toString(encoding)
}

/** After this, an idle thread ends. It takes about 5 MB. */
const IDLE_MS = 10_000

/** Threads for digests, in the same slots as the hashes of libuv's pool. Started on demand. */
export class DigestThreads {
  readonly #slots: Threads
  readonly #idle: { thread: Worker; timer: NodeJS.Timeout }[] = []

  constructor(slots: Threads) {
    this.#slots = slots
  }

  async compute(program: DigestProgram, password: Password): Promise<Buffer> {
    const request = { program, password: Buffer.from(password) }
    if (roundsOf(program) <= ROUNDS_IN_PLACE) return computeDigest(request)
    return await this.#slots.run(() => this.#onThread(request))
  }

  async #onThread(request: DigestRequest): Promise<Buffer> {
    const kept = this.#idle.pop()
    clearTimeout(kept?.timer)
    const thread = kept?.thread ?? new Worker(new URL('./digest-program.js', import.meta.url))
    thread.ref()
    const answered = once(thread, 'message')
    thread.postMessage(request)
    const [digest]: Uint8Array[] = await answered
    this.#keep(thread)
    return Buffer.from(digest ?? [])
  }

  #keep(thread: Worker): void {
    const timer = setTimeout(() => {
      this.#idle.splice(this.#idle.indexOf(entry), 1)
      void thread.terminate()
    }, IDLE_MS)
    const entry = { thread, timer: timer.unref() }
    thread.unref()
    this.#idle.push(entry)
  }
}
