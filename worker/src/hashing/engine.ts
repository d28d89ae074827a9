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

/** The engines that work here. */
export interface Engines<E> {
  readonly first: E
  /** In order of preference, `first` included. The others are loaded, and tested, when they are asked for. */
  inOrder(): AsyncIterable<E>
}

/** Loads the first that works. Throws when no engine works. */
export async function loadEngines<Stored, E extends Engine<Stored>>(
  candidates: readonly (() => Promise<E>)[],
  knownAnswers: readonly KnownAnswer<Stored>[],
): Promise<Engines<E>> {
  const loaded = new Map<number, Promise<E | undefined>>()

  async function load(candidate: () => Promise<E>): Promise<E | undefined> {
    const engine = await candidate().catch(() => undefined)
    return engine !== undefined && (await answersRight(engine, knownAnswers)) ? engine : undefined
  }

  async function* inOrder(): AsyncGenerator<E> {
    for (const [n, candidate] of candidates.entries()) {
      const loading = loaded.get(n) ?? load(candidate)
      loaded.set(n, loading)
      const engine = await loading
      if (engine !== undefined) yield engine
    }
  }

  for await (const first of inOrder()) return { first, inOrder }
  throw new Error('no implementation of the hash works on this machine')
}

/** The first engine that takes something; undefined where no engine does. */
export async function firstThat<E>({ inOrder }: Engines<E>, takes: (engine: E) => boolean): Promise<E | undefined> {
  for await (const engine of inOrder()) if (takes(engine)) return engine
  return undefined
}

/** Verifies with the first engine that accepts the hash, because engines differ in the formats they accept. */
export async function verifyByFirst<Stored, E extends Engine<Stored>>(
  { inOrder }: Engines<E>,
  password: Password,
  stored: Stored,
  { signal, takes = () => true }: { signal?: AbortSignal | undefined; takes?: (engine: E) => boolean } = {},
): Promise<boolean> {
  let refusal: unknown
  for await (const engine of inOrder()) {
    if (!takes(engine)) continue
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
