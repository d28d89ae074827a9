/** Hashes for the application that started this process, as a worker does for a queue. */
import { within } from '@spillway/common/within'
import type {
  BesideCancellation,
  BesideCapacity,
  BesideMessage,
  BesidePing,
  BesideRequest,
} from '@spillway/queue/wire/beside'
import type { Result } from '@spillway/queue/wire/job'
import type { HashPolicy } from '@spillway/queue/wire/policy'
import { CapacityEstimate, measureCapacity } from '../hashing/capacity-estimate.js'
import { Hasher, UnaffordablePolicyError } from '../hashing/index.js'
import { UnsupportedHashError } from '../hashing/methods/recipe.js'
import { performHash, performVerify } from '../hashing/perform.js'
import { asPolicy } from '../hashing/policy.js'
import { hashingMemory, jobsUnderLoad, policyKib } from '../hashing/threads.js'

/** Answers requests over the channel of this process until the application ends or disconnects. */
export async function serve(policy: HashPolicy, processors: number): Promise<void> {
  process.once('disconnect', () => process.exit(0))
  const hashing = await Hashing.open({ policy, processors, native: true }, (message) => {
    tell(message, () => message.kind === 'unfit' && process.exit(1))
  })
  if (hashing === undefined) return
  process.on('message', (message: BesideRequest | BesideCancellation | BesidePing) => {
    if ('ping' in message) tell({ kind: 'alive' })
    else hashing.take(message)
  })
}

/** The application may be gone: without a callback, that would be an error of this process. */
function tell(message: BesideMessage, told: () => void = () => undefined): void {
  process.send?.(message, undefined, undefined, told)
}

interface HashingOptions {
  policy: HashPolicy
  processors: number
  /** Whether the native engine is used, whose threads last as long as the process. */
  native: boolean
}

/**
 * Packages hash until then: the native engine measures itself first, for longer than many scripts
 * run.
 */
const ENGINE_AFTER_MS = 300
/** How long calls wait for the measurement. Then packages continue. */
const MEASURING_MS = 2_000

const TO_INSTALL = 'install @node-rs/argon2 and @node-rs/bcrypt, the optional dependencies of @spillway/client'

interface Using {
  hasher: Hasher
  estimate: CapacityEstimate
}

type Say = (message: BesideMessage) => void

/** Takes requests of an application, and sends their results. */
export class Hashing {
  readonly #say: Say
  readonly #slots: number
  #using: Using
  /** Requests wait while the engine measures itself, so that they do not disturb it. */
  #measuring: Promise<unknown> = Promise.resolve()
  /** The aborters of the requests in hand. */
  readonly #aborters = new Map<number, AbortController>()

  /** Sends `ready`; or sends `unfit` with the reason, and resolves with undefined. */
  static async open({ policy, processors, native }: HashingOptions, say: Say): Promise<Hashing | undefined> {
    try {
      const memory = hashingMemory({ slots: processors, policyKib: policyKib(policy), isShared: true })
      const hasher = await Hasher.load(asPolicy(policy), memory)
      const hashing = new Hashing(hasher, memory.slots, say)
      hashing.#ready(native ? undefined : hasher.description)
      if (native)
        setTimeout(() => hashing.#useEngine(Hasher.load(asPolicy(policy), { ...memory, native })), ENGINE_AFTER_MS)
      return hashing
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (error instanceof UnaffordablePolicyError) say({ kind: 'unfit', code: 'unsupported_policy', reason })
      else say({ kind: 'unfit', code: 'not_installed', reason: `${reason}: ${TO_INSTALL}` })
      return undefined
    }
  }

  private constructor(hasher: Hasher, slots: number, say: Say) {
    const policyMs = hasher.policyMs()
    const first = { costMs: policyMs, latencyMs: policyMs }
    this.#using = { hasher, estimate: new CapacityEstimate({ slots, first, times: () => hasher.times() }) }
    this.#slots = slots
    this.#say = say
  }

  #useEngine(opening: Promise<Hasher>): void {
    const engine = opening.then(async (hasher) => {
      if (hasher.native !== undefined) this.#using = { hasher, estimate: await measureCapacity(hasher, this.#slots) }
      this.#ready(hasher.description)
    })
    const packages = this.#using.hasher
    const orPackages = engine.catch((error: unknown) => {
      this.#ready(packages.description)
      console.error('spillway: the native engine is not used:', error)
    })
    this.#measuring = within(MEASURING_MS, orPackages)
  }

  #ready(engine?: string): void {
    this.#say({ kind: 'ready', capacity: this.#capacity(), engine })
  }

  #capacity(): BesideCapacity {
    const { hasher, estimate } = this.#using
    return {
      slots: this.#slots,
      inHand: jobsUnderLoad(this.#slots, hasher.batchWidth()),
      serviceMs: estimate.serviceMs(),
      lineMs: estimate.lineMs(),
      latencyMs: estimate.latencyMs(),
    }
  }

  take(message: BesideRequest | BesideCancellation): void {
    if ('cancelled' in message) this.#aborters.get(message.id)?.abort()
    else void this.#measuring.then(() => this.#answer(message))
  }

  async #answer({ id, request }: BesideRequest): Promise<void> {
    const { hasher, estimate } = this.#using
    const startedAt = performance.now()
    const aborter = new AbortController()
    this.#aborters.set(id, aborter)
    const options = { hasher, refused, signal: aborter.signal }
    const performed = 'storedHash' in request ? performVerify(request, options) : performHash(request, options)
    const result = await performed.then(
      (done) => {
        estimate.finished(performance.now() - startedAt)
        return done.result
      },
      (): Result => ({ kind: 'refused', code: 'hashing_failed' }),
    )
    this.#aborters.delete(id)
    this.#say({ kind: 'performed', id, result, capacity: this.#capacity() })
  }
}

function refused(error: unknown): void {
  if (!(error instanceof UnsupportedHashError)) console.error('spillway: a hash failed:', error)
}
