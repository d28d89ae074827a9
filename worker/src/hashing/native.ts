/**
 * The native engine (worker/engine), if it has been built: hashes several passwords at a time in
 * each of its threads. Calls run in order; waiting calls of one algorithm and cost share a thread.
 */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { ThreadTimes } from './threads.js'

/** The name of the engine in logs and metrics. */
export const NATIVE_NAME = 'worker/engine'

/** The exports of the addon (worker/engine/src/addon.rs). */
interface Addon {
  VERSION?: string
  measure(memoryKib: number, roomKib: number): Promise<Profile>
  Engine: new (threads: number, memoryKib: number, settle: (batch: readonly Settled[]) => void) => AddonEngine
}

interface Profile {
  bcryptWidth: number
  bcryptCode: string
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
  /** Returns how many calls of this kind one thread does at a time. */
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

/** Each later call keeps this share of a wider call's width, because methods are mixed. */
const WIDTH_DECAY = 0.95
/** Ids have 32 bits. */
const IDS = 2 ** 32
/** The period of a timer that only keeps the process alive while calls are pending. */
const NEVER_MS = 2 ** 31 - 1

/** No engine was built, packed or installed for this platform. */
export class NoEngineError extends Error {
  override readonly name = 'NoEngineError'
}

interface NativeOptions {
  /** Memory of a thread's batch [64 MiB]. A hash that needs more is never hashed with others. */
  threadKib?: number | undefined
  /** Memory of a hash for which widths are measured [OWASP's]. */
  policyKib?: number | undefined
}

const DEFAULTS = { threadKib: 65_536, policyKib: 19_456 }

/** The engine's threads, and the calls in them. */
export class NativeEngine {
  readonly #engine: AddonEngine
  readonly #pending = new Map<number, Pending>()
  readonly #alive: NodeJS.Timeout
  readonly #times = { wallMs: 0, cpuMs: 0 }
  #lastId = 0
  #recentWidth = 1
  #isClosed = false
  /** Its widths and code variants, and what is missing, for operators. */
  readonly description: string
  /** Code variants that gave wrong answers on this processor and are not used. */
  readonly wrong: readonly string[]

  private constructor(addon: Addon, profile: Profile, threads: number, threadKib: number) {
    this.description = describe(profile)
    this.wrong = profile.wrong
    this.#alive = setInterval(() => {}, NEVER_MS).unref()
    this.#engine = new addon.Engine(threads, threadKib, (batch) => {
      for (const settled of batch) {
        this.#times.wallMs += settled.wallMs
        this.#times.cpuMs += settled.cpuMs
        this.#forget(settled.id)?.settle(settled)
      }
    })
  }

  /** Throws NoEngineError, or an Error that says why no installed engine is used. */
  static async start(threads: number, options: NativeOptions = {}): Promise<NativeEngine> {
    const { threadKib = DEFAULTS.threadKib, policyKib = DEFAULTS.policyKib } = options
    const addon = loadAddon(ADDON_FILES)
    return new NativeEngine(addon, await addon.measure(policyKib, threadKib), threads, threadKib)
  }

  /** Starts the engine, or gives the reason why packages hash in its place. */
  static async tryStart(threads: number, options: NativeOptions): Promise<{ native?: NativeEngine; whyNot?: string }> {
    try {
      return { native: await NativeEngine.start(threads, options) }
    } catch (error) {
      if (error instanceof NoEngineError) return { whyNot: `; ${HOW_TO_HAVE}` }
      const reason = error instanceof Error ? error.message : String(error)
      return { whyNot: `, because ${NATIVE_NAME} cannot be used: ${reason}` }
    }
  }

  get waiting(): number {
    return this.#engine.waiting
  }

  get running(): number {
    return this.#engine.running
  }

  /** The best number of hashes like this for one thread at a time. Throws for an unknown format. */
  widthOf(stored: string): number {
    return this.#engine.widthOf(stored)
  }

  /** The best number for the widest of the last calls. */
  batchWidth(): number {
    return Math.round(this.#recentWidth)
  }

  /** Resets the batch width after test calls. */
  forgetCalls(): void {
    this.#recentWidth = 1
  }

  /** The time of the threads for all calls so far, each counted as in a full batch. */
  times(): ThreadTimes {
    return { ...this.#times }
  }

  /** Rejects for an unknown format or cost. Signals cancel calls that have not begun. */
  verify(password: string | Uint8Array, storedHash: string, signal?: AbortSignal): Promise<boolean> {
    return this.#call(password, storedHash, signal, ({ matches }) => matches)
  }

  /** Makes a stored hash from a setting, which is a stored hash without its digest. */
  hash(password: string | Uint8Array, setting: string, signal?: AbortSignal): Promise<string> {
    return this.#call(password, setting, signal, ({ hash }) => hash)
  }

  /** Ends the threads after the calls in hand. Waiting calls reject. */
  close(): void {
    this.#isClosed = true
    for (const id of this.#pending.keys())
      if (this.#engine.cancel(id)) this.#forget(id)?.reject(new Error('the engine was closed'))
    this.#engine.end()
  }

  #call<T>(password: string | Uint8Array, stored: string, signal: AbortSignal | undefined, read: Read<T>) {
    return new Promise<T>((resolve, reject) => {
      signal?.throwIfAborted()
      if (this.#isClosed) throw new Error('the engine was closed')
      this.#lastId = (this.#lastId + 1) % IDS
      const id = this.#lastId
      const width = this.#engine.submit(id, password, stored)
      this.#recentWidth = Math.max(width, this.#recentWidth * WIDTH_DECAY)
      const cancel = () => {
        if (this.#engine.cancel(id)) this.#forget(id)?.reject(signal?.reason)
      }
      signal?.addEventListener('abort', cancel, { once: true })
      const end = () => signal?.removeEventListener('abort', cancel)
      this.#pending.set(id, {
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
      this.#alive.ref()
    })
  }

  #forget(id: number): Pending | undefined {
    const call = this.#pending.get(id)
    this.#pending.delete(id)
    if (this.#pending.size === 0) this.#alive.unref()
    return call
  }
}

const require = createRequire(import.meta.url)
const platform = `${process.platform}-${process.arch}`

/** Packages of the engine. On Linux there is one for each C library. */
export const ENGINE_PACKAGES = (process.platform === 'linux' ? ['-gnu', '-musl'] : ['']).map(
  (library) => `@spillway/engine-${platform}${library}`,
)

const beside = (path: string) => fileURLToPath(new URL(path, import.meta.url))
/** The same path from src/ and from dist/. */
const built = beside('../../engine/spillway.node')

/** In the order of trying. */
export const ADDON_FILES = [...installed(), built].filter(existsSync)

/** The file that is tried first, or where it would be built. */
export const ADDON_FILE = ADDON_FILES[0] ?? built

export const HOW_TO_HAVE = existsSync(beside('../../engine/Cargo.toml'))
  ? 'with cargo, pnpm start builds worker/engine'
  : `${ENGINE_PACKAGES.join(' or ')} of the same release has worker/engine`

function installed(): string[] {
  return ENGINE_PACKAGES.flatMap((name) => {
    try {
      return [require.resolve(name)]
    } catch {
      return []
    }
  })
}

/** The version of this package, which an engine must have too. */
export function ownVersion(): string {
  // In the packed client, package.json is above the programs.
  const file = [beside('../package.json'), beside('../../package.json')].find(existsSync)
  if (file === undefined) throw new Error('the package has no package.json')
  const { version }: { version: string } = JSON.parse(readFileSync(file, 'utf8'))
  return version
}

/** The first that loads and has this version: another version may export a different API. */
export function loadAddon(files: readonly string[]): Addon {
  const reasons: string[] = []
  for (const file of files) {
    try {
      const addon: Addon = require(file)
      if (addon.VERSION === ownVersion()) return addon
      reasons.push(`${file} is of version ${addon.VERSION ?? 'none'}, not ${ownVersion()}`)
    } catch (error) {
      reasons.push(`${file} does not load: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  throw reasons.length === 0 ? new NoEngineError('there is no engine for this platform') : new Error(reasons.join('; '))
}

const HUGE_PAGES_MISSING =
  'Linux gave argon2 no huge pages, which save a tenth of its time: /sys/kernel/mm/transparent_hugepage/enabled of the node must be madvise or always'

function describe(profile: Profile): string {
  const widths = (['bcrypt', 'argon2', 'pbkdf2', 'scrypt'] as const)
    // Some processors have no code for the last two.
    .filter((name) => profile[`${name}Width`] !== 0)
    .map((name) => `${name} ${profile[`${name}Width`]} at a time (${profile[`${name}Code`]})`)
  const wrong = profile.wrong.join(', ')
  return [
    [NATIVE_NAME, ...widths].join(', '),
    ...(profile.hugePages === false ? [HUGE_PAGES_MISSING] : []),
    ...(wrong === '' ? [] : [`not used because of wrong answers on this processor: ${wrong}`]),
  ].join('; ')
}

type Read<T> = (settled: Settled) => T | undefined
