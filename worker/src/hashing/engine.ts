/**
 * Engines: implementations of the same algorithm, the fastest first. An engine is used only if it loads and passes a known-answer
 * test on this machine, so a build that is wrong for this processor is skipped.
 */

import type { Password } from './methods/recipe.js'

/** A test vector: this password matches this stored hash. */
export interface KnownAnswer<Stored = string> {
  stored: Stored
  password: string
}

/** @template Stored what it takes for a stored hash */
export interface Engine<Stored = string> {
  /** The package it comes from. */
  readonly name: string
  /** The signal cancels a call that has not begun, if the engine supports that. */
  verify(password: Password, stored: Stored, signal?: AbortSignal): Promise<boolean>
}

/** The engines that work here, in order of preference. Throws when none does. */
export async function loadEngines<Stored, E extends Engine<Stored>>(
  candidates: readonly (() => Promise<E>)[],
  knownAnswers: readonly KnownAnswer<Stored>[],
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
export async function verifyByFirst<Stored>(
  engines: readonly Engine<Stored>[],
  password: Password,
  stored: Stored,
  signal?: AbortSignal,
): Promise<boolean> {
  let refusal: unknown
  for (const engine of engines) {
    try {
      return await engine.verify(password, stored, signal)
    } catch (error) {
      signal?.throwIfAborted()
      refusal = error
    }
  }
  throw refusal
}

async function answersRight<Stored>(
  engine: Engine<Stored>,
  knownAnswers: readonly KnownAnswer<Stored>[],
): Promise<boolean> {
  try {
    for (const { password, stored } of knownAnswers) {
      if (!(await engine.verify(password, stored))) return false
      if (await engine.verify(`${password}.`, stored)) return false
    }
    return true
  } catch {
    return false
  }
}
