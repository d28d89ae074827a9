// The cores that processes are pinned to.
import { spawnSync } from 'node:child_process'
import { platform } from 'node:process'

/** Linux with util-linux. */
export const canPin = platform === 'linux' && spawnSync('taskset', ['--version']).status === 0

export function pinned(command: string[], cores: readonly number[] | undefined): string[] {
  return cores === undefined || !canPin ? command : ['taskset', '-c', cores.join(','), ...command]
}

/** Moves a process with all its threads; later children inherit the cores. Silent on failure. */
export function moveTo(pid: number | undefined, cores: readonly number[]): void {
  spawnSync('taskset', ['-a', '-c', '-p', cores.join(','), String(pid)], { stdio: 'ignore' })
}
