// A part of a release: what makes it, and what comes out.
import type { Keeper } from '@spillway/local/processes/keeper'
import type { Source } from './source.ts'

export interface Release extends Source {
  /** Where its files are put. */
  outdir: string
  keeper: Keeper
  say(sentence: string): void
}

/** The names of its files, or the reason why there are no files, for what cannot be made on every machine. */
export type Made = { files: string[] } | { missing: string }

/** Rejects when something is wrong with what it was to make. */
export type Part = (release: Release) => Promise<Made>
