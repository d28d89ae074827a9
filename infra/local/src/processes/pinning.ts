// Keeps processes on chosen processors.
import { spawnSync } from 'node:child_process'
import { platform } from 'node:process'

/** Whether processes can be pinned here: Linux with util-linux. */
export const canPin = platform === 'linux' && spawnSync('taskset', ['--version']).status === 0

/** A command line that runs only on these cores, where the system can do that. */
export function pinned(command: string[], cores: readonly number[] | undefined): string[] {
  return cores === undefined || !canPin ? command : ['taskset', '-c', cores.join(','), ...command]
}

/** Moves a running process with all its threads; its later children inherit the cores. Silent where that cannot be. */
export function moveTo(pid: number | undefined, cores: readonly number[]): void {
  spawnSync('taskset', ['-a', '-c', '-p', cores.join(','), String(pid)], { stdio: 'ignore' })
}
