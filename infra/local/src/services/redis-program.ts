// What is known of a Redis that was found: how to run it.
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
  /** Where its data goes. */
  dir: string
  /** False when its data need not outlive it. */
  durable: boolean
  /** Where what is fetched goes. */
  programsDir: string
  /** Told what is about to be fetched. */
  say: (sentence: string) => void
}

/** A Redis that is a program of this system, run on a data folder with these variables added to its environment. */
export function localProgram(command: string, dir: string, env: NodeJS.ProcessEnv = {}): RedisProgram {
  return (port) => ({
    process: { command, args: ['-'], cwd: dir, env: { ...process.env, ...env } },
    settings: { bind: '127.0.0.1', port: String(port), dir, pidfile: pidFileOf(dir) },
  })
}

/** Names the process that runs on a data folder. */
export function pidFileOf(dir: string): string {
  return join(dir, 'redis.pid')
}

/** Either will do: Valkey speaks the same protocol. */
export const serverNames = ['redis-server', 'valkey-server']
