/** Hashes for the application that started this process, as a worker does for a queue: the same engines, policy and verdicts. */
import type { BesideCapacity, BesideMessage, BesideRequest } from '@spillway/client/protocol/beside'
import type { HashPolicy } from '@spillway/client/protocol/policy'
import { jobsUnderLoad } from '../consumer/jobs-in-hand.js'
import { type CapacityEstimate, measureCapacity } from '../hashing/capacity-estimate.js'
import { createHasher, type Hasher, UnaffordablePolicyError, UnsupportedHashError } from '../hashing/index.js'
import { memoryLimitKib } from '../hashing/memory-limit.js'
import { performHash, performVerify } from '../hashing/perform.js'
import { asPolicy } from '../hashing/policy.js'

/** Reports `ready`, or `unfit` with the reason; then answers requests until the application ends or disconnects. */
export async function serve(policy: HashPolicy, concurrency: number): Promise<void> {
  process.once('disconnect', () => process.exit(0))
  try {
    const hasher = await createHasher(asPolicy(policy), {
      slots: concurrency,
      native: true,
      memoryLimitKib: memoryLimitKib({ slots: concurrency, isShared: true }),
    })
    const estimate = await measureCapacity(hasher)
    const capacity = () => ({
      slots: concurrency,
      inHand: jobsUnderLoad(concurrency, hasher.batchWidth()),
      serviceMs: estimate.serviceMs(),
      latencyMs: estimate.latencyMs(),
    })
    process.on('message', (asked: BesideRequest) => void answer(asked, { hasher, estimate, capacity }))
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
}

async function answer({ id, request }: BesideRequest, { hasher, estimate, capacity }: Serving): Promise<void> {
  const startedAt = performance.now()
  const options = { hasher, refused }
  const { verdict } = await ('storedHash' in request ? performVerify(request, options) : performHash(request, options))
  estimate.finished(performance.now() - startedAt)
  say({ kind: 'performed', id, verdict, capacity: capacity() })
}

function refused(error: unknown): void {
  if (!(error instanceof UnsupportedHashError)) console.error('spillway: a hash failed:', error)
}

/** Sends to the application; it may be gone. */
function say(message: BesideMessage, sent: () => void = () => undefined): void {
  process.send?.(message, undefined, undefined, sent)
}
