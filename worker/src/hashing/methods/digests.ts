/** Digests that programs of this repository compute, and weak digests inside argon2. */
import { timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Threads } from '../threads.js'
import { encodeCrypt64 } from './crypt64.js'
import { computeDigest, type DigestProgram, type DigestRequest, memoryKibOf, roundsOf } from './digest-programs.js'
import type { Argon2Recipe, DigestEncoding, DigestRecipe, Method, Password, WrappedRecipe } from './recipe.js'

/** As phpass and Drupal limit it themselves: each round reads the whole password. */
const PASSWORD_MAX_BYTES = 4_096
/** So many take less time than to send them to another thread. */
const ROUNDS_IN_PLACE = 10

type Compute = (program: DigestProgram, password: Password) => Promise<Buffer>

export function createCompute(threads: Threads): Compute {
  const onThread = createDigestThreads(threads)
  return async (program, password) => {
    const request = { program, password: Buffer.from(password) }
    return roundsOf(program) <= ROUNDS_IN_PLACE ? computeDigest(request) : await onThread(request, memoryKibOf(program))
  }
}

export function digests(compute: Compute): Method<DigestRecipe> {
  return {
    family: 'digest',
    engine: 'node:crypto',
    async verify(password, { program, text, encoding }) {
      if (Buffer.byteLength(password) > PASSWORD_MAX_BYTES) return false
      const made = Buffer.from(encode(await compute(program, password), encoding))
      const expected = Buffer.from(text)
      // Drupal cuts its digest off.
      return (
        expected.length > 0 && made.length >= expected.length && isSame(made.subarray(0, expected.length), expected)
      )
    },
  }
}

export function wrapped(compute: Compute, argon2: Method<Argon2Recipe>): Method<WrappedRecipe> {
  return {
    family: 'wrapped',
    engine: argon2.engine,
    async verify(password, { inner, outer }, signal) {
      const isTooLong = Buffer.byteLength(password) > PASSWORD_MAX_BYTES
      const digest = isTooLong ? Buffer.alloc(0) : await compute(inner, password)
      return await argon2.verify(digest.toString('hex'), outer, signal)
    },
  }
}

function isSame(one: Buffer, other: Buffer): boolean {
  return timingSafeEqual(one, other)
}

function encode(bytes: Buffer, encoding: DigestEncoding): string {
  return encoding === 'crypt64' ? encodeCrypt64(bytes) : bytes.toString(encoding)
}

// Threads for digests that libuv's pool does not compute: started when they are needed, ended when they are not.

/** A thread that nobody has needed for this long is ended. It takes about 5 MB. */
const IDLE_MS = 10_000

type ComputeDigest = (request: DigestRequest, memoryKib?: number) => Promise<Buffer>

/** Computes digests on as many threads as there are slots, which the hashes of libuv's pool count against too. */
function createDigestThreads(threads: Threads): ComputeDigest {
  const idle: { thread: Worker; timer: NodeJS.Timeout }[] = []

  function take(): Worker {
    const kept = idle.pop()
    if (kept === undefined) return new Worker(new URL('./digest-program.js', import.meta.url))
    clearTimeout(kept.timer)
    return kept.thread
  }

  function keep(thread: Worker): void {
    const timer = setTimeout(() => {
      idle.splice(idle.indexOf(entry), 1)
      void thread.terminate()
    }, IDLE_MS)
    const entry = { thread, timer: timer.unref() }
    thread.unref()
    idle.push(entry)
  }

  async function compute(request: DigestRequest): Promise<Buffer> {
    const thread = take()
    thread.ref()
    const answered = once(thread, 'message')
    thread.postMessage(request)
    const [digest]: Uint8Array[] = await answered
    keep(thread)
    return Buffer.from(digest ?? [])
  }

  return (request, memoryKib) => threads.run(() => compute(request), memoryKib)
}
