/**
 * The engine of `worker/engine`, where it has been built: hashes several passwords at a time in one thread. It has threads of
 * its own. What waits is done in order, and shares a thread with what is of its kind and cost.
 */
import { randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

/** Where a build is put, seen from here or from what is compiled of this. */
export const ADDON_FILE = fileURLToPath(new URL('../../engine/spillway.node', import.meta.url))

/** As it is called in logs and metrics. */
export const NATIVE_NAME = 'worker/engine'

/** What a call may be given. */
export interface CallOptions {
  /** Takes the call back if it has not begun; the promise is rejected with the signal's reason then. */
  signal?: AbortSignal | undefined
}

export interface NativeEngine {
  /** How many hash at a time. */
  readonly threads: number
  /** The kind of code and the widths that it uses here, for people. */
  readonly description: string
  /** What gave wrong answers on this processor and is not used. */
  readonly wrong: readonly string[]
  /** How many calls wait, and how many are in hand. */
  readonly waiting: number
  readonly running: number
  /** How many calls for such a hash or setting a thread does best at a time. Throws for one that it does not know. */
  widthOf(stored: string): number
  /** Rejects for a form or cost that it does not know. Bytes are taken as they are, text as UTF-8. */
  verify(password: string | Uint8Array, storedHash: string, options?: CallOptions): Promise<boolean>
  /** A new stored hash by a setting: a stored hash without its digest, see {@link argon2Setting}. */
  hash(password: string | Uint8Array, setting: string, options?: CallOptions): Promise<string>
  /** Ends the threads after what they have in hand. What waits is rejected. */
  close(): void
}

/** What the addon itself exports (worker/engine/src/addon.rs). */
interface Addon {
  measure(): Promise<{ bcryptWidth: number; argon2Width: number; argon2Code: string; wrong: string[] }>
  Engine: new (threads: number, settle: (batch: readonly Settled[]) => void) => AddonEngine
}

interface AddonEngine {
  readonly waiting: number
  readonly running: number
  submit(id: number, password: string | Uint8Array, stored: string): void
  cancel(id: number): boolean
  widthOf(stored: string): number
  end(): void
}

interface Settled {
  id: number
  matches?: boolean
  hash?: string
  failure?: string
}

interface Pending {
  settle(outcome: Settled): void
  reject(reason: unknown): void
}

const SALT_BYTES = 16
/** Ids are 32 bits wide. No call waits until they have gone round. */
const IDS = 2 ** 32
/** A timer that is never due keeps the process alive while there are calls, as any other work does. */
const NEVER_MS = 2 ** 31 - 1

/** Loads the engine and starts its threads. Rejects where it has not been built, or does not load. */
export async function startNativeEngine(threads: number): Promise<NativeEngine> {
  const addon: Addon = createRequire(import.meta.url)(ADDON_FILE)
  const { bcryptWidth, argon2Width, argon2Code, wrong } = await addon.measure()
  const pending = new Map<number, Pending>()
  const alive = setInterval(() => {}, NEVER_MS)
  alive.unref()
  const engine = new addon.Engine(threads, (batch) => {
    for (const settled of batch) forget(settled.id)?.settle(settled)
  })
  let lastId = 0

  function forget(id: number): Pending | undefined {
    const call = pending.get(id)
    pending.delete(id)
    if (pending.size === 0) alive.unref()
    return call
  }

  function call<T>(password: string | Uint8Array, stored: string, signal: AbortSignal | undefined, read: Read<T>) {
    return new Promise<T>((resolve, reject) => {
      signal?.throwIfAborted()
      lastId = (lastId + 1) % IDS
      const id = lastId
      engine.submit(id, password, stored)
      const cancel = () => {
        if (engine.cancel(id)) forget(id)?.reject(signal?.reason)
      }
      signal?.addEventListener('abort', cancel, { once: true })
      const end = () => signal?.removeEventListener('abort', cancel)
      pending.set(id, {
        settle(settled) {
          end()
          const value = read(settled)
          if (value === undefined) reject(new Error(settled.failure ?? 'the engine gave no answer'))
          else resolve(value)
        },
        reject(reason) {
          end()
          reject(reason)
        },
      })
      alive.ref()
    })
  }

  return {
    threads,
    description: `bcrypt ${bcryptWidth} at a time, argon2 ${argon2Width} at a time (${argon2Code})`,
    wrong,
    get waiting() {
      return engine.waiting
    },
    get running() {
      return engine.running
    },
    widthOf: (stored) => engine.widthOf(stored),
    verify: (password, storedHash, { signal } = {}) => call(password, storedHash, signal, ({ matches }) => matches),
    hash: (password, setting, { signal } = {}) => call(password, setting, signal, ({ hash }) => hash),
    close() {
      for (const id of pending.keys()) if (engine.cancel(id)) forget(id)?.reject(new Error('the engine was closed'))
      engine.end()
    },
  }
}

/** Takes from an outcome what a call was for. */
type Read<T> = (settled: Settled) => T | undefined

/** A setting for a new argon2id hash: its cost, and a salt that nobody had before. */
export function argon2Setting(cost: { memoryKib: number; time: number; parallelism: number }): string {
  const salt = randomBytes(SALT_BYTES).toString('base64').replace(/=+$/, '')
  return `$argon2id$v=19$m=${cost.memoryKib},t=${cost.time},p=${cost.parallelism}$${salt}`
}
