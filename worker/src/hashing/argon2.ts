/** argon2id (RFC 9106), in the PHC string format. */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { Argon2Cost } from '@spillway/client/protocol/policy'
import { type Argon2Setting, argon2Setting, type ExactHash, newArgon2Setting } from '@spillway/client/protocol/setting'
import { unpadded } from '@spillway/client/protocol/stored-hash'
import type { Algorithm } from './algorithm.js'
import { DIGEST_BYTES, type Inputs, nativeEngine, nodeRsEngine, referenceEngine } from './argon2-engines.js'
import { firstThat, type KnownAnswer, loadEngines, verifyByFirst } from './engine.js'
import { MEMORY_LIMIT_KIB } from './memory-limit.js'
import type { Argon2Recipe } from './methods/recipe.js'
import type { NativeEngine } from './native.js'
import type { Threads } from './threads.js'

/** The highest cost of a hash that is accepted, beside its memory: one bad row must not exhaust a worker. */
const TIME_LIMIT = 64
const PARALLELISM_LIMIT = 16
/** Longer ones are asked for in jobs only. */
const DIGEST_LIMIT_BYTES = 1_024

export interface Argon2Options {
  native?: NativeEngine | undefined
  /** The memory that one hash may take, in KiB [1 GiB]. */
  memoryLimitKib?: number | undefined
}

/**
 * argon2id. Also verifies argon2i, argon2d and version 16, which are below any policy.
 * `@node-rs/argon2` selects code for the processor at run time and takes 0.4 of the time of `argon2`, which is prebuilt for any
 * x86-64 (`pnpm load engines`).
 */
export async function createArgon2(
  threads: Threads,
  { native, memoryLimitKib = MEMORY_LIMIT_KIB }: Argon2Options = {},
): Promise<Algorithm<Argon2Cost, Argon2Setting, Argon2Recipe>> {
  const engines = await loadEngines(
    [() => nativeEngine(native), () => nodeRsEngine(threads), () => referenceEngine(threads)],
    knownAnswers,
  )
  const isAffordable = ({ memoryKib, time, parallelism }: Argon2Cost) =>
    memoryKib <= memoryLimitKib && time <= TIME_LIMIT && parallelism <= PARALLELISM_LIMIT
  return {
    family: 'argon2',
    engine: engines.first.name,
    isAffordable,
    hash: (password, cost, signal) =>
      engines.first.hash(password, newArgon2Setting(cost), { digestBytes: DIGEST_BYTES }, signal),
    async hashExactly(exact, setting, signal) {
      const inputs = inputsOf(exact)
      const isAccepted = isPossible(setting) && isAffordable(setting) && inputs.digestBytes <= DIGEST_LIMIT_BYTES
      const engine = isAccepted ? await firstThat(engines, ({ takes }) => takes(inputs)) : undefined
      return await engine?.hash(Buffer.from(exact.password, 'base64'), setting, inputs, signal)
    },
    decoy: (cost) => ({
      method: 'argon2',
      stored: { ...newArgon2Setting(cost), digest: randomBytes(DIGEST_BYTES) },
    }),
    async verify(password, { stored }, signal) {
      const { digest, associatedData } = stored
      // Engines read the specification's order of parameters alone.
      const setting = argon2Setting(stored)
      const text = `${setting}$${unpadded(digest)}`
      if (associatedData === undefined) return await verifyByFirst(engines, password, text, { signal })
      const inputs = { digestBytes: digest.length, associatedData }
      const engine = await firstThat(engines, ({ takes }) => takes(inputs))
      if (engine === undefined) throw new Error('no implementation here takes associated data')
      return timingSafeEqual(Buffer.from(await engine.hash(password, stored, inputs, signal)), Buffer.from(text))
    },
  }
}

function inputsOf({ digestBytes = DIGEST_BYTES, secret, associatedData }: ExactHash): Inputs {
  return {
    digestBytes,
    ...(secret === undefined ? {} : { secret: Buffer.from(secret, 'base64') }),
    ...(associatedData === undefined ? {} : { associatedData: Buffer.from(associatedData, 'base64') }),
  }
}

/** From the reference implementation, with password and salt of its tests; with one lane and with several. */
const knownAnswers: KnownAnswer[] = [
  '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$yrdGtGIZk/3JHsUHh5gLQUqQppLwvGjf4Z+cJbPLqew',
  '$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHRzb21lc2FsdA$wRLS7mudUUQT+AYkMYeVIYbo8Zysq4DyCoI9VJ8RHSw',
  '$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$v1DTJpl9EsRIKW3SFzgsjRS88aGpPJC+3z7P2gMxfv8',
].map((stored) => ({ stored, password: 'password' }))

/** RFC 9106, 3.1: at least one pass, one lane, and eight blocks for each lane. */
function isPossible({ memoryKib, time, parallelism }: Argon2Cost): boolean {
  return time >= 1 && parallelism >= 1 && memoryKib >= 8 * parallelism
}
