/** argon2 (RFC 9106), in the PHC string format, and its implementations. */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { Argon2Cost } from '@spillway/queue/wire/policy'
import { argon2Setting, type ExactHash, newArgon2Setting } from '@spillway/queue/wire/setting'
import { type Argon2Setting, parseArgon2, unpadded } from '@spillway/queue/wire/stored-hash'
import { Engines, type HashEngine, type KnownAnswer, nativeEngine } from './engine.js'
import type { Argon2Recipe, Method, Password } from './methods/recipe.js'
import type { NativeEngine } from './native.js'
import { MEMORY_LIMIT_KIB, type Threads } from './threads.js'

/** Highest accepted cost, beside the memory: one bad row must not exhaust a worker. */
const TIME_LIMIT = 64
const PARALLELISM_LIMIT = 16
const DIGEST_BYTES = 32
const DIGEST_LIMIT_BYTES = 1_024

export interface Argon2Options {
  native?: NativeEngine | undefined
  /** The memory that one hash may take, in KiB [1 GiB]. */
  memoryLimitKib?: number | undefined
}

/**
 * Makes argon2id; also verifies argon2i, argon2d and version 16. `@node-rs/argon2` selects code for
 * the processor and takes 0.4 of the time of `argon2` (`pnpm load engines`). Only `argon2` accepts
 * associated data.
 */
export class Argon2 implements Method<Argon2Recipe> {
  readonly family = 'argon2'
  readonly engine: string
  readonly #engines: Engines<Argon2Engine>
  readonly #memoryLimitKib: number

  private constructor(engines: Engines<Argon2Engine>, memoryLimitKib: number) {
    this.engine = engines.first.name
    this.#engines = engines
    this.#memoryLimitKib = memoryLimitKib
  }

  static async load(threads: Threads, options: Argon2Options = {}): Promise<Argon2> {
    const { native, memoryLimitKib = MEMORY_LIMIT_KIB } = options
    const candidates = [
      native && (async () => engineOf(native, threads)),
      () => nodeRsEngine(threads),
      () => referenceEngine(threads),
    ]
    return new Argon2(await Engines.load(candidates, knownAnswers), memoryLimitKib)
  }

  isAffordable({ memoryKib, time, parallelism }: Argon2Cost): boolean {
    return memoryKib <= this.#memoryLimitKib && time <= TIME_LIMIT && parallelism <= PARALLELISM_LIMIT
  }

  hash(password: string, cost: Argon2Cost, signal?: AbortSignal): Promise<string> {
    return this.#engines.first.hash(password, { ...newArgon2Setting(cost), digestBytes: DIGEST_BYTES }, signal)
  }

  /** Undefined for a setting that costs too much or that no engine accepts. */
  async hashExactly(exact: ExactHash, setting: Argon2Setting, signal?: AbortSignal): Promise<string | undefined> {
    const { digestBytes = DIGEST_BYTES, password } = exact
    if (!isPossible(setting) || !this.isAffordable(setting) || digestBytes > DIGEST_LIMIT_BYTES) return undefined
    const [secret, associatedData] = [bytesOf(exact.secret), bytesOf(exact.associatedData)]
    const inputs = { ...setting, digestBytes, ...(secret && { secret }), ...(associatedData && { associatedData }) }
    const engine = await this.#engines.firstThat(({ takes }) => takes(inputs))
    return await engine?.hash(Buffer.from(password, 'base64'), inputs, signal)
  }

  /** A recipe that takes as long as any other, and that no known password matches. */
  dummy(cost: Argon2Cost): Argon2Recipe {
    return { method: 'argon2', stored: { ...newArgon2Setting(cost), digest: randomBytes(DIGEST_BYTES) } }
  }

  async verify(password: Password, { stored }: Argon2Recipe, signal?: AbortSignal): Promise<boolean> {
    const { digest, ...setting } = stored
    // Engines read parameters only in the order of the specification.
    const text = encoded(setting, digest)
    if (setting.associatedData === undefined) return await this.#engines.verify(password, text, signal)
    const inputs = { ...setting, digestBytes: digest.length }
    const engine = await this.#engines.firstThat(({ takes }) => takes(inputs))
    if (engine === undefined) throw new Error('no implementation here takes associated data')
    return timingSafeEqual(Buffer.from(await engine.hash(password, inputs, signal)), Buffer.from(text))
  }
}

function bytesOf(base64: string | undefined): Buffer | undefined {
  return base64 === undefined ? undefined : Buffer.from(base64, 'base64')
}

/** From the tests of the reference implementation; with one lane and with several. */
const knownAnswers: KnownAnswer[] = [
  '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$yrdGtGIZk/3JHsUHh5gLQUqQppLwvGjf4Z+cJbPLqew',
  '$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHRzb21lc2FsdA$wRLS7mudUUQT+AYkMYeVIYbo8Zysq4DyCoI9VJ8RHSw',
  '$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$v1DTJpl9EsRIKW3SFzgsjRS88aGpPJC+3z7P2gMxfv8',
].map((stored) => ({ stored, password: 'password' }))

/** RFC 9106, 3.1: at least one pass, one lane, and eight blocks for each lane. */
function isPossible({ memoryKib, time, parallelism }: Argon2Cost): boolean {
  return time >= 1 && parallelism >= 1 && memoryKib >= 8 * parallelism
}

/** A setting with the inputs that are not in its text. */
interface Inputs extends Argon2Setting {
  digestBytes: number
  secret?: Buffer
  associatedData?: Buffer
}

interface Argon2Engine extends HashEngine<Inputs> {
  takes(inputs: Inputs): boolean
}

function isInText({ digestBytes, secret, associatedData }: Inputs): boolean {
  return digestBytes === DIGEST_BYTES && !secret && !associatedData
}

function engineOf(native: NativeEngine, threads: Threads): Argon2Engine {
  const engine = nativeEngine(native, argon2Setting)
  return {
    ...engine,
    takes: isInText,
    verify: (password, stored, signal) =>
      threads.inEngine(() => engine.verify(password, stored, signal), memoryKibOf(stored)),
  }
}

async function nodeRsEngine(threads: Threads): Promise<Argon2Engine> {
  const { hashRaw, verify } = await import('@node-rs/argon2')
  return {
    name: '@node-rs/argon2',
    takes: ({ associatedData }) => !associatedData,
    hash: (password, setting) =>
      threads.run(async () => {
        const { memoryKib: memoryCost, time: timeCost, parallelism, salt, digestBytes: outputLen, secret } = setting
        const [algorithm, version] = [TYPES[setting.algorithm], setting.version === 19 ? 1 : 0]
        const cost = { memoryCost, timeCost, parallelism }
        const options = { algorithm, version, ...cost, salt, outputLen, ...(secret && { secret }) }
        return encoded(setting, await hashRaw(password, options))
      }, setting.memoryKib),
    verify: (password, stored) => threads.run(() => verify(stored, password), memoryKibOf(stored)),
  }
}

async function referenceEngine(threads: Threads): Promise<Argon2Engine> {
  const { hash, verify } = await import('argon2')
  return {
    name: 'argon2',
    takes: () => true,
    hash: (password, setting) =>
      threads.run(async () => {
        const { memoryKib: memoryCost, time: timeCost, digestBytes: hashLength, algorithm, ...others } = setting
        const options = { type: TYPES[algorithm], memoryCost, timeCost, hashLength, ...others }
        return encoded(setting, await hash(Buffer.from(password), { ...options, raw: true }))
      }, setting.memoryKib),
    verify: (password, stored) => threads.run(() => verify(stored, Buffer.from(password)), memoryKibOf(stored)),
  }
}

function memoryKibOf(storedHash: string): number | undefined {
  return parseArgon2(storedHash)?.memoryKib
}

/** The numbers of the types in both packages. */
const TYPES = { argon2d: 0, argon2i: 1, argon2id: 2 } as const

/** The text of a stored hash, without associated data. */
function encoded(setting: Argon2Setting, digest: Buffer): string {
  return `${argon2Setting(setting)}$${unpadded(digest)}`
}
