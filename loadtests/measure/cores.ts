// Who runs on which core. The generator gets the first for itself, so that it takes nothing from those it measures.
import { spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { canPin } from '../contenders/program.ts'

/** The load generator's, in every placement but one: see below. */
export const generatorCores = [0]

/**
 * `apart`: generator and database on the first core, the contender and Redis on the others. `worker-apart`: the worker
 * alone on the others. `together`: everyone on all cores, for what is counted with every process included.
 */
export type Placement = 'apart' | 'worker-apart' | 'together'

/** The contender's cores; undefined where nothing can be pinned or there is only one. */
export function contenderCores(cores = availableParallelism()): number[] | undefined {
  return canPin && cores > 1 ? Array.from({ length: cores - 1 }, (_, n) => n + 1) : undefined
}

/** Moves a running process with all its threads; what it starts from now on goes along. Silent where that is not allowed. */
export function moveTo(pid: number, cores: readonly number[]): void {
  spawnSync('taskset', ['-a', '-c', '-p', cores.join(','), String(pid)], { stdio: 'ignore' })
}

/** Every core there is. */
export function allCores(cores = availableParallelism()): number[] {
  return Array.from({ length: cores }, (_, n) => n)
}
