/** Performs a request, for the consumer of the queue and the process beside an application. */
import type { HashRequest, Verdict, VerifyRequest } from '@spillway/queue/wire/job'
import { parseSetting } from '@spillway/queue/wire/setting'
import { ASK_OLD_SYSTEM } from '@spillway/queue/wire/stored-hash'
import { type Hasher, UnsupportedHashError, UnsupportedPasswordError } from './index.js'
import type { AlgorithmName } from './methods/recipe.js'

export interface Performed {
  verdict: Verdict
  /** What was hashed: for a decoy the algorithm of new hashes. */
  algorithm: AlgorithmName
  /** Makes the new hash that the verdict says will follow. */
  upgrade?: () => Promise<Verdict>
}

export interface PerformOptions {
  hasher: Hasher
  refused(error: unknown): void
  /** Asked about accounts that are not here yet, or came without a hash [nobody is asked]. */
  oldSystem?:
    | { ask(email: string, password: string, signal?: AbortSignal): Promise<boolean | undefined> | undefined }
    | undefined
  /** Awaits another system's answer. Meanwhile the job takes no slot [it takes one]. */
  beside?: (<T>(answer: Promise<T>) => Promise<T>) | undefined
  /** Called when a matching hash was replaced, with the algorithm of the stored hash. */
  rehashed?(from: AlgorithmName): void
  /** Takes back what has not begun: the request then rejects with its reason. */
  signal?: AbortSignal | undefined
}

export async function performHash(request: HashRequest, options: PerformOptions): Promise<Performed> {
  const { hasher, signal } = options
  const { password, policy, exact } = request
  const hash = async (): Promise<Verdict> => ({
    kind: 'hashed',
    hash: await (exact === undefined ? hasher.hash(password, policy, signal) : hasher.hashExactly(exact, signal)),
  })
  const wanted = exact === undefined ? policy : parseSetting(exact.setting)
  return { verdict: await orRefusal(hash, options), algorithm: wanted?.algorithm ?? hasher.algorithm }
}

export async function performVerify(request: VerifyRequest, options: PerformOptions): Promise<Performed> {
  const { storedHash, policy } = request
  const newHashes = policy?.algorithm ?? options.hasher.algorithm
  const algorithm = storedHash === null ? newHashes : options.hasher.algorithmOf(storedHash)
  const verdict = await orRefusal(() => verifyOrDecoy(request, algorithm, options), options)
  const isDecoy = verdict.kind === 'refused' && verdict.code === 'unsupported_hash'
  const performed = { verdict, algorithm: isDecoy ? newHashes : algorithm }
  if (verdict.kind !== 'match' || !verdict.hashFollows) return performed
  return { ...performed, upgrade: () => orRefusal(() => newHashOf(request, algorithm, options), options) }
}

async function newHashOf(
  { password, policy }: VerifyRequest,
  from: AlgorithmName,
  { hasher, rehashed, signal }: PerformOptions,
): Promise<Extract<Verdict, { kind: 'hashed' }>> {
  const hash = await hasher.hash(password, hasher.policyFor(password, policy), signal)
  rehashed?.(from)
  return { kind: 'hashed', hash }
}

/** The verdict of the work, or `refused` when it fails. */
async function orRefusal(work: () => Promise<Verdict>, { refused, signal }: PerformOptions): Promise<Verdict> {
  try {
    return await work()
  } catch (error) {
    if (signal?.aborted && error === signal.reason) throw error
    refused(error)
    const isCoded = error instanceof UnsupportedHashError || error instanceof UnsupportedPasswordError
    return { kind: 'refused', code: isCoded ? error.code : 'hashing_failed' }
  }
}

/** Without a decoy, the time would reveal an account with an unsupported stored hash. */
async function verifyOrDecoy(request: VerifyRequest, from: AlgorithmName, options: PerformOptions): Promise<Verdict> {
  try {
    return await verify(request, from, options)
  } catch (error) {
    if (error instanceof UnsupportedHashError) await decoy(request, options)
    throw error
  }
}

async function verify(request: VerifyRequest, algorithm: AlgorithmName, options: PerformOptions): Promise<Verdict> {
  const { password, storedHash, nextPassword, policy, rehash = true, upgrade } = request
  const { hasher, signal } = options
  if (request.oldSystem?.ask && (storedHash === null || storedHash === ASK_OLD_SYSTEM))
    return await verifyByOldSystem(request, request.oldSystem.email, options)
  if (storedHash === null) {
    await decoy(request, options)
    return { kind: 'mismatch' }
  }
  if (!(await hasher.verify(formsOf(request), storedHash, signal))) return { kind: 'mismatch' }
  if (nextPassword !== undefined) return { kind: 'match', hash: await hasher.hash(nextPassword, policy, signal) }
  if (!rehash && upgrade === undefined) return { kind: 'match' }
  if (hasher.isAmbiguous(password, storedHash)) return { kind: 'match' }
  const wanted = hasher.policyFor(password, policy)
  const mode = upgrade ?? (policy === undefined ? undefined : 'weaker')
  // A sender's own policy may be bcrypt, and the stored format may have read the password whole.
  if (!hasher.isDue(storedHash, wanted, mode) || !hasher.readsWhole(password, wanted)) return { kind: 'match' }
  if (upgrade !== undefined) return { kind: 'match', hashFollows: true }
  return { ...(await newHashOf(request, algorithm, options)), kind: 'match' }
}

/**
 * The decoy takes its time for everyone, whatever the old system says. That hashed what was typed.
 * Without its answer the verdict is `unavailable`; where it is not even asked, nothing is hashed.
 */
async function verifyByOldSystem(request: VerifyRequest, email: string, options: PerformOptions): Promise<Verdict> {
  const { hasher, oldSystem, signal, beside = (answer) => answer } = options
  const { password, typed = password, policy } = request
  const asked = oldSystem?.ask(email, typed, signal)
  if (asked === undefined) return UNAVAILABLE
  await decoy(request, options)
  const isRight = await beside(asked)
  signal?.throwIfAborted()
  if (isRight === undefined) return UNAVAILABLE
  if (!isRight) return { kind: 'mismatch' }
  return { kind: 'match', hash: await hasher.hash(password, hasher.policyFor(password, policy), signal) }
}

const UNAVAILABLE: Verdict = { kind: 'refused', code: 'unavailable' }

function formsOf({ password, typed }: VerifyRequest): string[] {
  return typed === undefined || typed === password ? [password] : [password, typed]
}

/** As many hashes as a wrong password takes for an account. */
async function decoy(request: VerifyRequest, { hasher, signal }: PerformOptions): Promise<void> {
  for (const form of formsOf(request)) await hasher.decoy(form, request.policy, signal)
}
