/**
 * Engines: the same algorithm in more than one implementation, the fastest first. An engine is used only after it loaded
 * here and passed known answers, so a build that is wrong for this processor is passed over and never asked.
 */

/** A password whose verdict for a stored hash is known. */
export interface KnownAnswer {
  storedHash: string
  password: string
}

export interface Engine {
  /** The package it comes from. */
  readonly name: string
  /** The signal takes the call back where it has not begun and the engine can do that. */
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

/** Verifies with the first engine that takes the hash: one that refuses a form the others know costs no login. */
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
