/**
 * The native engine (worker/engine), if it has been built: hashes several passwords at a time in each of its own threads. Calls run
 * in order; waiting calls of the same algorithm and cost share a thread.
 */
import { createRequire } from 'node:module'
import { ADDON_FILES, ownVersion } from './addon-file.js'
import type { ThreadTimes } from './threads.js'

/** The name of the engine in logs and metrics. */
export const NATIVE_NAME = 'worker/engine'

export interface CallOptions {
  /** Cancels the call if it has not begun; the promise then rejects with the signal's reason. */
  signal?: AbortSignal | undefined
}

export interface NativeEngine {
  /** The instruction set and the widths in use, for people. */
  readonly description: string
  /** Whether Linux gave huge pages for argon2's memory; undefined where that is not known. */
  readonly hugePages: boolean | undefined
  /** Code variants that are not used because they gave wrong answers on this processor. */
  readonly wrong: readonly string[]
  /** Calls that wait, and calls in hand. */
  readonly waiting: number
  readonly running: number
  /** The best number of such hashes for one thread at a time. Throws for an unknown format. */
  widthOf(stored: string): number
  /** The best number for the widest of the last calls. */
  batchWidth(): number
  /** Resets the batch width after test calls, which say nothing about the calls to come. */
  forgetCalls(): void
  /** The time of the threads for all calls so far; for each as it is in a full batch. */
  times(): ThreadTimes
  /** Rejects for an unknown format or cost. Text is hashed as UTF-8. */
  verify(password: string | Uint8Array, storedHash: string, options?: CallOptions): Promise<boolean>
  /** Makes a stored hash from a setting, which is a stored hash without its digest: see protocol/setting.ts of the client. */
  hash(password: string | Uint8Array, setting: string, options?: CallOptions): Promise<string>
  /** Ends the threads after the calls in hand. Waiting calls reject. */
  close(): void
}

/** The exports of the addon (worker/engine/src/addon.rs). */
interface Addon {
  VERSION?: string
  measure(memoryKib: number, roomKib: number): Promise<Profile>
  Engine: new (threads: number, memoryKib: number, settle: (batch: readonly Settled[]) => void) => AddonEngine
}

interface Profile {
  bcryptWidth: number
  argon2Width: number
  argon2Code: string
  pbkdf2Width: number
  pbkdf2Code: string
  scryptWidth: number
  scryptCode: string
  wrong: string[]
  hugePages?: boolean
}

interface AddonEngine {
  readonly waiting: number
  readonly running: number
  /** Returns how many such calls one thread does at a time. */
  submit(id: number, password: string | Uint8Array, stored: string): number
  widthOf(stored: string): number
  cancel(id: number): boolean
  end(): void
}

interface Settled {
  id: number
  matches?: boolean
  hash?: string
  failure?: string
  wallMs: number
  cpuMs: number
}

interface Pending {
  settle(outcome: Settled): void
  reject(reason: unknown): void
}

/** The share of an earlier, wider call's width that each call keeps: calls of several methods come mixed. */
const WIDTH_DECAY = 0.95
/** Ids have 32 bits; no call waits long enough for its id to be used again. */
const IDS = 2 ** 32
/** The period of a timer that only keeps the process alive while calls are pending. */
const NEVER_MS = 2 ** 31 - 1

/** There is no engine for this platform: nothing was built, packed or installed. */
export class NoEngineError extends Error {
  override readonly name = 'NoEngineError'
}

export interface NativeOptions {
  /** The memory that a thread may take for what it hashes together, in KiB [64 MiB]. One hash that takes more is done alone. */
  threadKib?: number | undefined
  /** The memory of the hashes to come, in KiB, for which widths are measured [OWASP's]. */
  policyKib?: number | undefined
}

const DEFAULTS = { threadKib: 65_536, policyKib: 19_456 }

/**
 * Loads the engine and starts its threads.
 * @throws NoEngineError, and an Error that says why no installed engine is used
 */
export async function startNativeEngine(threads: number, options: NativeOptions = {}): Promise<NativeEngine> {
  const { threadKib = DEFAULTS.threadKib, policyKib = DEFAULTS.policyKib } = options
  const addon = loadAddon(ADDON_FILES)
  const profile = await addon.measure(policyKib, threadKib)
  const pending = new Map<number, Pending>()
  const alive = setInterval(() => {}, NEVER_MS)
  alive.unref()
  const engine = new addon.Engine(threads, threadKib, (batch) => {
    for (const settled of batch) {
      wallMs += settled.wallMs
      cpuMs += settled.cpuMs
      forget(settled.id)?.settle(settled)
    }
  })
  let lastId = 0
  let [wallMs, cpuMs] = [0, 0]
  let recentWidth = 1
  let isClosed = false

  function forget(id: number): Pending | undefined {
    const call = pending.get(id)
    pending.delete(id)
    if (pending.size === 0) alive.unref()
    return call
  }

  function call<T>(password: string | Uint8Array, stored: string, signal: AbortSignal | undefined, read: Read<T>) {
    return new Promise<T>((resolve, reject) => {
      signal?.throwIfAborted()
      if (isClosed) throw new Error('the engine was closed')
      lastId = (lastId + 1) % IDS
      const id = lastId
      recentWidth = Math.max(engine.submit(id, password, stored), recentWidth * WIDTH_DECAY)
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
    description: describe(profile),
    hugePages: profile.hugePages,
    wrong: profile.wrong,
    get waiting() {
      return engine.waiting
    },
    get running() {
      return engine.running
    },
    widthOf: (stored) => engine.widthOf(stored),
    batchWidth: () => Math.round(recentWidth),
    forgetCalls() {
      recentWidth = 1
    },
    times: () => ({ wallMs, cpuMs }),
    verify: (password, storedHash, { signal } = {}) => call(password, storedHash, signal, ({ matches }) => matches),
    hash: (password, setting, { signal } = {}) => call(password, setting, signal, ({ hash }) => hash),
    close() {
      isClosed = true
      for (const id of pending.keys()) if (engine.cancel(id)) forget(id)?.reject(new Error('the engine was closed'))
      engine.end()
    },
  }
}

/** The first that loads and is of this version: another may have other doors. */
export function loadAddon(files: readonly string[]): Addon {
  const reasons: string[] = []
  for (const file of files) {
    try {
      const addon: Addon = createRequire(import.meta.url)(file)
      if (addon.VERSION === ownVersion()) return addon
      reasons.push(`${file} is of version ${addon.VERSION ?? 'none'}, not ${ownVersion()}`)
    } catch (error) {
      reasons.push(`${file} does not load: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  throw reasons.length === 0 ? new NoEngineError('there is no engine for this platform') : new Error(reasons.join('; '))
}

function describe(profile: Profile): string {
  const { bcryptWidth, argon2Width, argon2Code, pbkdf2Width, pbkdf2Code, scryptWidth, scryptCode } = profile
  const others = [
    ['argon2', argon2Width, argon2Code],
    ['pbkdf2', pbkdf2Width, pbkdf2Code],
    ['scrypt', scryptWidth, scryptCode],
  ]
  // There is no code of the last two for some processors.
  const parts = others
    .filter(([, width]) => width !== 0)
    .map(([name, width, code]) => `${name} ${width} at a time (${code})`)
  return [`bcrypt ${bcryptWidth} at a time`, ...parts].join(', ')
}

/** Reads the result of a call from its outcome. */
type Read<T> = (settled: Settled) => T | undefined
