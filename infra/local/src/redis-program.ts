// Where a Redis comes from: the PATH, else fetched into the ignored folder, else what the system offers.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import type { Keeper, KeptProcess } from './keeper.ts'
import { onPath } from './on-path.ts'
import { aptRedis } from './redis-apt.ts'
import { brewRedis, containerRedis, systemRedis } from './redis-system.ts'
import { Refusal } from './refusal.ts'

/** How to run a Redis that was found, so that it answers on this port of the loopback interface. */
export type RedisProgram = (port: number) => {
  process: Omit<KeptProcess, 'rank' | 'logFd'>
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

/** One place a Redis may come from: undefined where it does not apply, a rejection where it should have worked. */
export type RedisSource = (search: RedisSearch) => Promise<RedisProgram | undefined>

/** From the least to the most intrusive; only the last one changes the system itself, and only as root. */
const sources: RedisSource[] = [pathRedis, aptRedis, brewRedis, containerRedis, systemRedis]

/** The first Redis that works. Rejects with a Refusal that says why each source that applied did not. */
export async function findRedis(search: RedisSearch): Promise<RedisProgram> {
  const failures: string[] = []
  for (const source of sources) {
    try {
      const program = await source(search)
      if (program) return program
    } catch (error) {
      if (search.keeper.closing) throw error
      failures.push(error instanceof Error ? error.message : String(error))
    }
  }
  const why = failures.length > 0 ? ` (${failures.join('; ')})` : ''
  throw new Refusal(
    'No Redis could be had: install redis-server or valkey-server, start Docker or Podman, ' +
      `or set REDIS_URL to a Redis of your own.${why}`,
  )
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

export const serverNames = ['redis-server', 'valkey-server']

async function pathRedis({ dir }: RedisSearch): Promise<RedisProgram | undefined> {
  const command = onPath(serverNames)
  if (command === undefined) return undefined
  execFileSync(command, ['--version'], { stdio: 'ignore' })
  return localProgram(command, dir)
}
