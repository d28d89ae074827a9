/** Hashes for the application that started this process, as a worker does for a queue: the same engines, policy and verdicts. */
import type { BesideMessage, BesideRequest } from '@spillway/client/protocol/beside'
import type { HashPolicy } from '@spillway/client/protocol/policy'
import { createHasher, type Hasher, UnsupportedHashError } from '../hashing/index.js'
import { performHash, performVerify } from '../hashing/perform.js'
import { asPolicy } from '../hashing/policy.js'

/** Says that requests can be taken, or why not, and then answers them until the application ends or disconnects. */
export async function serve(policy: HashPolicy, concurrency: number): Promise<void> {
  process.once('disconnect', () => process.exit(0))
  try {
    const hasher = await createHasher(asPolicy(policy), { slots: concurrency, native: true })
    await hasher.hash('warm-up')
    const slots = concurrency * hasher.batchWidth()
    process.on('message', (asked: BesideRequest) => void answer(asked, hasher))
    say({ kind: 'ready', slots, serviceMs: await measureServiceMs(hasher, slots) })
  } catch (error) {
    say({ kind: 'unfit', reason: error instanceof Error ? error.message : String(error) }, () => process.exit(1))
  }
}

async function answer({ id, request }: BesideRequest, hasher: Hasher): Promise<void> {
  const startedAt = performance.now()
  const options = { hasher, refused }
  const { verdict } = await ('storedHash' in request ? performVerify(request, options) : performHash(request, options))
  say({ kind: 'performed', id, verdict, serviceMs: performance.now() - startedAt })
}

/** The time of a verify while all slots are busy, in milliseconds. */
async function measureServiceMs(hasher: Hasher, slots: number): Promise<number> {
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: slots }, () => hasher.decoy('measured')))
  return performance.now() - startedAt
}

function refused(error: unknown): void {
  if (!(error instanceof UnsupportedHashError)) console.error('spillway: a hash failed:', error)
}

/** Sends to the application; it may be gone. */
function say(message: BesideMessage, sent: () => void = () => undefined): void {
  process.send?.(message, undefined, undefined, sent)
}
