// The machine that the figures were measured on, without its name or its owner.
import { execFileSync } from 'node:child_process'
import { cpus, release, totalmem } from 'node:os'
import { allCores, contenderCores } from '../measure/cores.ts'

export type Machine = ReturnType<typeof describeMachine>

/** @param engine the engine of Spillway's workers */
export function describeMachine(engine: 'native' | 'packages') {
  return {
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    cores: allCores.length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    system: `${process.platform} ${release()} ${process.arch}`,
    node: process.version,
    engine,
    /** Whether processes could be pinned to cores. */
    pinned: contenderCores !== undefined,
  }
}

/** The short hash of the checked-out commit, with `+` for changes on top; `unknown` outside a checkout. */
export function describeCommit(): string {
  try {
    const git = (...args: string[]) =>
      execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    const changed = git('status', '--porcelain', '--untracked-files=no').trim() !== ''
    return git('rev-parse', '--short', 'HEAD').trim() + (changed ? '+' : '')
  } catch {
    return 'unknown'
  }
}
