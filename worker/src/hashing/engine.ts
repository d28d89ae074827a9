/**
 * Engines: implementations of one algorithm, the fastest first. An engine is used only if it loads
 * and passes a known-answer test on this machine, so that a build for another processor is skipped.
 */
import type { Password } from './methods/recipe.js'
import { NATIVE_NAME, type NativeEngine } from './native.js'

export interface KnownAnswer<Stored = string> {
  stored: Stored
  password: string
}

/** @template Stored the form in which it takes a stored hash */
export interface Engine<Stored = string> {
  /** The package it comes from. */
  readonly name: string
  /** The signal cancels a call that has not begun, if the engine supports that. */
  verify(password: Password, stored: Stored, signal?: AbortSignal): Promise<boolean>
}

/** An engine that also makes hashes. */
export interface HashEngine<Setting> extends Engine {
  hash(password: Password, setting: Setting, signal?: AbortSignal): Promise<string>
}

/** The native engine for an algorithm; `textOf` writes its settings. */
export function nativeEngine<Setting>(native: NativeEngine, textOf: (setting: Setting) => string): HashEngine<Setting> {
  return {
    name: NATIVE_NAME,
    hash: (password, setting, signal) => native.hash(password, textOf(setting), signal),
    verify: (password, stored, signal) => native.verify(password, stored, signal),
  }
}

type Candidate<E> = () => Promise<E>

export class Engines<E extends Engine<Stored>, Stored = string> {
  readonly first: E
  readonly inOrder: () => AsyncIterable<E>

  private constructor(first: E, inOrder: () => AsyncIterable<E>) {
    this.first = first
    this.inOrder = inOrder
  }

  /** Loads the first engine that works, and the others on demand. Throws when no engine works. */
  static async load<E extends Engine<Stored>, Stored = string>(
    candidates: readonly (Candidate<E> | undefined)[],
    knownAnswers: readonly KnownAnswer<Stored>[],
  ): Promise<Engines<E, Stored>> {
    const loaded = new Map<Candidate<E>, Promise<E | undefined>>()
    async function* inOrder(): AsyncGenerator<E> {
      for (const candidate of candidates) {
        if (candidate === undefined) continue
        const loading = loaded.get(candidate) ?? tested(candidate, knownAnswers)
        loaded.set(candidate, loading)
        const engine = await loading
        if (engine !== undefined) yield engine
      }
    }
    for await (const first of inOrder()) return new Engines(first, inOrder)
    throw new Error('no implementation of the hash works on this machine')
  }

  /** The first engine that `takes` accepts; undefined if there is none. */
  async firstThat(takes: (engine: E) => boolean): Promise<E | undefined> {
    for await (const engine of this.inOrder()) if (takes(engine)) return engine
    return undefined
  }

  /** Verifies with the first engine that accepts the hash: engines accept different formats. */
  async verify(password: Password, stored: Stored, signal?: AbortSignal): Promise<boolean> {
    let refusal: unknown
    for await (const engine of this.inOrder()) {
      try {
        return await engine.verify(password, stored, signal)
      } catch (error) {
        signal?.throwIfAborted()
        refusal = error
      }
    }
    throw refusal
  }
}

/** The engine, if it loads and gives right answers. */
async function tested<E extends Engine<Stored>, Stored>(
  candidate: Candidate<E>,
  knownAnswers: readonly KnownAnswer<Stored>[],
): Promise<E | undefined> {
  try {
    const engine = await candidate()
    for (const { password, stored } of knownAnswers) {
      if (!(await engine.verify(password, stored))) return undefined
      if (await engine.verify(`${password}.`, stored)) return undefined
    }
    return engine
  } catch {
    return undefined
  }
}
