// How to run a Redis that was found.
import { join } from 'node:path'
import type { Keeper, Tool } from '../processes/keeper.ts'

/** How to run a Redis that was found, so that it answers on this port of the loopback interface. */
export type RedisProgram = (port: number) => {
  process: Tool
  /** The part of its configuration that depends on where it runs. */
  settings: Record<string, string>
}

export interface RedisSearch {
  keeper: Keeper
  /** The folder of its data. */
  dir: string
  /** False when its data may be deleted with it. */
  durable: boolean
  /** The folder of fetched programs. */
  programsDir: string
  /** Prints a notice before a download. */
  say: (sentence: string) => void
}

/** A Redis that is a program of this system, run on a data folder with these variables added to its environment. */
export function localProgram(command: string, dir: string, env: NodeJS.ProcessEnv = {}): RedisProgram {
  return (port) => ({
    process: { command, args: ['-'], cwd: dir, env: { ...process.env, ...env } },
    settings: { bind: '127.0.0.1', port: String(port), dir, pidfile: pidFileOf(dir) },
  })
}

/** The file with the pid of the process that uses a data folder. */
export function pidFileOf(dir: string): string {
  return join(dir, 'redis.pid')
}

/** Valkey speaks the same protocol. */
export const serverNames = ['redis-server', 'valkey-server']
