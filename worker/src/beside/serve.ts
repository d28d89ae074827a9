/** Hashes for the application that started this process, as a worker does for a queue: the same engines, policy and verdicts. */

import { within } from '@spillway/common/within'
import type {
  BesideCancellation,
  BesideCapacity,
  BesideMessage,
  BesidePing,
  BesideRequest,
} from '@spillway/queue/wire/beside'
import type { Verdict } from '@spillway/queue/wire/job'
import type { HashPolicy } from '@spillway/queue/wire/policy'
import { jobsUnderLoad } from '../consumer/jobs-in-hand.js'
import { CapacityEstimate, measureCapacity } from '../hashing/capacity-estimate.js'
import { Hasher, UnaffordablePolicyError, UnsupportedHashError } from '../hashing/index.js'
import { hashingMemory, policyKib } from '../hashing/memory-limit.js'
import { performHash, performVerify } from '../hashing/perform.js'
import { asPolicy } from '../hashing/policy.js'

/** Answers requests over the channel of this process until the application ends or disconnects. */
export async function serve(policy: HashPolicy, processors: number): Promise<void> {
  process.once('disconnect', () => process.exit(0))
  const take = await answering({ policy, processors, native: true }, (message) => {
    tell(message, () => message.kind === 'unfit' && process.exit(1))
  })
  if (take === undefined) return
  process.on('message', (message: BesideRequest | BesideCancellation | BesidePing) => {
    if ('ping' in message) tell({ kind: 'alive' })
    else take(message)
  })
}

/** The application may be gone: without a callback that would be an error of this process. */
function tell(message: BesideMessage, told: () => void = () => undefined): void {
  process.send?.(message, undefined, undefined, told)
}

export interface AnsweringOptions {
  policy: HashPolicy
  processors: number
  /** Whether the native engine is used, if there is one: its threads last as long as the process. */
  native: boolean
}

/**
 * The native engine measures itself before it hashes, for longer than many a script runs. Until then packages hash: a script that makes one
 * hash has ended before this, in milliseconds.
 */
const ENGINE_AFTER_MS = 300
/** How long calls wait for that. Where the process gets little of a core, packages continue. */
const MEASURING_MS = 2_000

/** Says `ready`, and returns what takes requests; or says `unfit` with the reason. */
export async function answering(
  { policy, processors, native }: AnsweringOptions,
  say: (message: BesideMessage) => void,
): Promise<((message: BesideRequest | BesideCancellation) => void) | undefined> {
  try {
    const memory = hashingMemory({ slots: processors, policyKib: policyKib(policy), isShared: true })
    const { slots } = memory
    const hasher = await Hasher.load(asPolicy(policy), memory)
    const foretoldMs = hasher.foretell({ password: '' }) ?? 0
    const first = { costMs: foretoldMs, latencyMs: foretoldMs, foretoldMs }
    const estimate = new CapacityEstimate({ slots, first, times: () => hasher.times() })
    let using: Using = { hasher, estimate }
    const aborters = new Map<number, AbortController>()
    const ready = (engine?: string) => say({ kind: 'ready', capacity: capacityOf(using, slots), engine })

    /** What packages have begun they finish; what comes while the engine measures itself waits a moment, and does not disturb it. */
    async function useEngine(): Promise<void> {
      const hasher = await Hasher.load(asPolicy(policy), { ...memory, native })
      if (hasher.native !== undefined) using = { hasher, estimate: await measureCapacity(hasher, slots) }
      ready(hasher.description)
    }

    ready(native ? undefined : hasher.description)
    let measuring: Promise<unknown> = Promise.resolve()
    const later = () => {
      const engine = useEngine().catch((error: unknown) => {
        ready(hasher.description)
        console.error('spillway: the native engine is not used:', error)
      })
      measuring = within(MEASURING_MS, engine)
    }
    if (native) setTimeout(later, ENGINE_AFTER_MS)
    return (message) => {
      if ('cancelled' in message) aborters.get(message.id)?.abort()
      else void measuring.then(() => answer(message, { using, slots, aborters, say }))
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    if (error instanceof UnaffordablePolicyError) say({ kind: 'unfit', code: 'unsupported_policy', reason })
    else say({ kind: 'unfit', code: 'not_installed', reason: `${reason}: ${TO_INSTALL}` })
    return undefined
  }
}

const TO_INSTALL = 'install @node-rs/argon2 and @node-rs/bcrypt, the optional dependencies of @spillway/client'

/** What hashes, and how long that takes. */
interface Using {
  hasher: Hasher
  estimate: CapacityEstimate
}

function capacityOf({ hasher, estimate }: Using, slots: number): BesideCapacity {
  return {
    slots,
    inHand: jobsUnderLoad(slots, hasher.batchWidth()),
    serviceMs: estimate.serviceMs(),
    lineMs: estimate.lineMs(),
    latencyMs: estimate.latencyMs(),
    unitCosts: { ...hasher.unitCosts, foretoldMs: estimate.foretoldMs() },
  }
}

interface Serving {
  using: Using
  slots: number
  /** Of the requests in hand. */
  aborters: Map<number, AbortController>
  say(message: BesideMessage): void
}

async function answer({ id, request }: BesideRequest, serving: Serving): Promise<void> {
  const { using, slots, aborters, say } = serving
  const { hasher, estimate } = using
  const startedAt = performance.now()
  const foretoldMs = hasher.foretell(request)
  const aborter = new AbortController()
  aborters.set(id, aborter)
  const options = { hasher, refused, signal: aborter.signal }
  const performed = 'storedHash' in request ? performVerify(request, options) : performHash(request, options)
  const verdict = await performed.then(
    (done) => {
      estimate.finished(performance.now() - startedAt, foretoldMs)
      return done.verdict
    },
    (): Verdict => ({ kind: 'refused', code: 'hashing_failed' }),
  )
  aborters.delete(id)
  say({ kind: 'performed', id, verdict, capacity: capacityOf(using, slots) })
}

function refused(error: unknown): void {
  if (!(error instanceof UnsupportedHashError)) console.error('spillway: a hash failed:', error)
}
