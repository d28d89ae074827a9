/**
 * Engines: implementations of the same algorithm, the fastest first. An engine is used only if it loads and passes a known-answer
 * test on this machine, so a build that is wrong for this processor is skipped.
 */

/** A test vector: this password matches this stored hash. */
export interface KnownAnswer {
  storedHash: string
  password: string
}

export interface Engine {
  /** The package it comes from. */
  readonly name: string
  /** The signal cancels a call that has not begun, if the engine supports that. */
  verify(password: string, storedHash: string, signal?: AbortSignal): Promise<boolean>
}

/** The engines that work here, in order of preference. Throws when none does. */
export async function loadEngines<E extends Engine>(
  candidates: readonly (() => Promise<E>)[],
  knownAnswers: readonly KnownAnswer[],
): Promise<[E, ...E[]]> {
  const working: E[] = []
  for (const load of candidates) {
    const engine = await load().catch(() => undefined)
    if (engine !== undefined && (await answersRight(engine, knownAnswers))) working.push(engine)
  }
  const [first, ...others] = working
  if (first === undefined) throw new Error('no implementation of the hash works on this machine')
  return [first, ...others]
}

/** Verifies with the first engine that accepts the hash, because engines differ in the formats they accept. */
export async function verifyByFirst(
  engines: readonly Engine[],
  password: string,
  storedHash: string,
  signal?: AbortSignal,
): Promise<boolean> {
  let refusal: unknown
  for (const engine of engines) {
    try {
      return await engine.verify(password, storedHash, signal)
    } catch (error) {
      signal?.throwIfAborted()
      refusal = error
    }
  }
  throw refusal
}

async function answersRight(engine: Engine, knownAnswers: readonly KnownAnswer[]): Promise<boolean> {
  try {
    for (const { password, storedHash } of knownAnswers) {
      if (!(await engine.verify(password, storedHash))) return false
      if (await engine.verify(`${password}.`, storedHash)) return false
    }
    return true
  } catch {
    return false
  }
}
