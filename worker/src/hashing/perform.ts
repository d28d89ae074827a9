/** Performs a request, for the consumer of the queue and the process beside an application. */
import type { HashRequest, Result, VerifyRequest } from '@spillway/queue/wire/job'
import { parseSetting } from '@spillway/queue/wire/setting'
import { type Hasher, UnsupportedPasswordError } from './index.js'
import { type AlgorithmName, UnsupportedHashError } from './methods/recipe.js'

export interface Performed {
  result: Result
  /** The algorithm that hashed; for a dummy hash, the algorithm of new hashes. */
  algorithm: AlgorithmName
  /** Makes the new hash that the result says will follow. */
  upgrade?: () => Promise<Result>
}

export interface PerformOptions {
  hasher: Hasher
  refused(error: unknown): void
  /** Called when a matching hash was replaced, with the algorithm of the stored hash. */
  rehashed?(from: AlgorithmName): void
  /** Cancels hashing that has not begun: the request then rejects with the signal's reason. */
  signal?: AbortSignal | undefined
}

export async function performHash(request: HashRequest, options: PerformOptions): Promise<Performed> {
  const { hasher, signal } = options
  const { password, policy, exact } = request
  const hash = async (): Promise<Result> => ({
    kind: 'hashed',
    hash: await (exact === undefined ? hasher.hash(password, policy, signal) : hasher.hashExactly(exact, signal)),
  })
  const wanted = exact === undefined ? policy : parseSetting(exact.setting)
  return { result: await orRefusal(hash, options), algorithm: wanted?.algorithm ?? hasher.algorithm }
}

export async function performVerify(request: VerifyRequest, options: PerformOptions): Promise<Performed> {
  const { storedHash, policy } = request
  const newHashes = policy?.algorithm ?? options.hasher.algorithm
  const algorithm = storedHash === null ? newHashes : options.hasher.algorithmOf(storedHash)
  const result = await orRefusal(() => verifyOrDummy(request, algorithm, options), options)
  const isDummy = result.kind === 'refused' && result.code === 'unsupported_hash'
  const performed = { result, algorithm: isDummy ? newHashes : algorithm }
  if (result.kind !== 'match' || !result.hashFollows) return performed
  return { ...performed, upgrade: () => orRefusal(() => newHashOf(request, algorithm, options), options) }
}

async function newHashOf(
  { password, policy }: VerifyRequest,
  from: AlgorithmName,
  { hasher, rehashed, signal }: PerformOptions,
): Promise<Extract<Result, { kind: 'hashed' }>> {
  const hash = await hasher.hash(password, hasher.policyFor(password, policy), signal)
  rehashed?.(from)
  return { kind: 'hashed', hash }
}

/** The result of the work, or `refused` when it fails. */
async function orRefusal(work: () => Promise<Result>, { refused, signal }: PerformOptions): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (signal?.aborted && error === signal.reason) throw error
    refused(error)
    const isCoded = error instanceof UnsupportedHashError || error instanceof UnsupportedPasswordError
    return { kind: 'refused', code: isCoded ? error.code : 'hashing_failed' }
  }
}

/** Without a dummy hash, the time would reveal an account with an unsupported stored hash. */
async function verifyOrDummy(request: VerifyRequest, from: AlgorithmName, options: PerformOptions): Promise<Result> {
  try {
    return await verify(request, from, options)
  } catch (error) {
    if (error instanceof UnsupportedHashError) await dummy(request, options)
    throw error
  }
}

async function verify(request: VerifyRequest, algorithm: AlgorithmName, options: PerformOptions): Promise<Result> {
  const { password, storedHash, nextPassword, policy, rehash = true, upgrade } = request
  const { hasher, signal } = options
  if (storedHash === null) {
    await dummy(request, options)
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

function formsOf({ password, typed }: VerifyRequest): string[] {
  return typed === undefined || typed === password ? [password] : [password, typed]
}

/** Makes as many hashes as a wrong password for an account. */
async function dummy(request: VerifyRequest, { hasher, signal }: PerformOptions): Promise<void> {
  for (const form of formsOf(request)) await hasher.dummy(form, request.policy, signal)
}
