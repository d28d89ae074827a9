/** Hashes for the application that started this process, as a worker does for a queue: the same engines, policy and verdicts. */
import type { BesideCancellation, BesideCapacity, BesideMessage, BesideRequest } from '@spillway/client/protocol/beside'
import type { Verdict } from '@spillway/client/protocol/job'
import type { HashPolicy } from '@spillway/client/protocol/policy'
import { jobsUnderLoad } from '../consumer/jobs-in-hand.js'
import { type CapacityEstimate, measureCapacity } from '../hashing/capacity-estimate.js'
import { createHasher, type Hasher, UnaffordablePolicyError, UnsupportedHashError } from '../hashing/index.js'
import { hashingMemory, policyKib } from '../hashing/memory-limit.js'
import { performHash, performVerify } from '../hashing/perform.js'
import { asPolicy } from '../hashing/policy.js'

/** Reports `ready`, or `unfit` with the reason; then answers requests until the application ends or disconnects. */
export async function serve(policy: HashPolicy, processors: number): Promise<void> {
  process.once('disconnect', () => process.exit(0))
  try {
    const memory = hashingMemory({ slots: processors, policyKib: policyKib(policy), isShared: true })
    const hasher = await createHasher(asPolicy(policy), { ...memory, native: true })
    const estimate = await measureCapacity(hasher, memory.slots)
    const capacity = () => ({
      slots: memory.slots,
      inHand: jobsUnderLoad(memory.slots, hasher.batchWidth()),
      serviceMs: estimate.serviceMs(),
      lineMs: estimate.lineMs(),
      latencyMs: estimate.latencyMs(),
    })
    const aborters = new Map<number, AbortController>()
    process.on('message', (message: BesideRequest | BesideCancellation) => {
      if ('cancelled' in message) aborters.get(message.id)?.abort()
      else void answer(message, { hasher, estimate, capacity, aborters })
    })
    say({ kind: 'ready', capacity: capacity() })
  } catch (error) {
    const code = error instanceof UnaffordablePolicyError ? 'unsupported_policy' : 'not_installed'
    const reason = error instanceof Error ? error.message : String(error)
    say({ kind: 'unfit', code, reason }, () => process.exit(1))
  }
}

interface Serving {
  hasher: Hasher
  estimate: CapacityEstimate
  capacity(): BesideCapacity
  /** Of the requests in hand. */
  aborters: Map<number, AbortController>
}

async function answer({ id, request }: BesideRequest, serving: Serving): Promise<void> {
  const { hasher, estimate, capacity, aborters } = serving
  const startedAt = performance.now()
  const aborter = new AbortController()
  aborters.set(id, aborter)
  const options = { hasher, refused, signal: aborter.signal }
  const performed = 'storedHash' in request ? performVerify(request, options) : performHash(request, options)
  const verdict = await performed.then(
    (done) => {
      estimate.finished(performance.now() - startedAt)
      return done.verdict
    },
    (): Verdict => ({ kind: 'refused', code: 'hashing_failed' }),
  )
  aborters.delete(id)
  say({ kind: 'performed', id, verdict, capacity: capacity() })
}

function refused(error: unknown): void {
  if (!(error instanceof UnsupportedHashError)) console.error('spillway: a hash failed:', error)
}

/** Sends to the application; it may be gone. */
function say(message: BesideMessage, sent: () => void = () => undefined): void {
  process.send?.(message, undefined, undefined, sent)
}
