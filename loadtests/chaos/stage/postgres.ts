// A PostgreSQL that scenarios may kill and start again.
import { join } from 'node:path'
import type { Keeper } from '@spillway/local/processes/keeper'
import { findPids, isRunning } from '@spillway/local/processes/process-table'
import { until } from '@spillway/local/processes/until'
import { startPostgres } from '@spillway/local/services/postgres'
import type { OwnServices } from '@spillway/local/testing/services'

export interface PostgresServer {
  /** Of a migrated database. */
  url: string
  /** Of the process that starts all others. */
  pid(): number
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>
  /** Starts it again on the same port and data; resolves when it answers. */
  start(): Promise<void>
}

/** The PostgreSQL of services that were started for this run. */
export function restartablePostgres(keeper: Keeper, { dir, databaseUrl: url }: OwnServices): PostgresServer {
  const { port, password } = new URL(url)
  function pid(): number {
    const [postmaster] = findPids('postgres', `-p ${port}`)
    if (postmaster === undefined) throw new Error('PostgreSQL does not run')
    return postmaster
  }
  return {
    url,
    pid,
    async kill() {
      const running = pid()
      process.kill(running, 'SIGKILL')
      await until(() => !isRunning(running), { what: 'the end of PostgreSQL' })
    },
    async start() {
      const again = await startPostgres({
        keeper,
        dir: join(dir, 'postgres'),
        logFile: join(dir, 'logs', 'postgres.log'),
        preferredPort: Number(port),
        password,
        durable: false,
        say: console.log,
      })
      if (new URL(again.url).port !== port) throw new Error('the port of PostgreSQL was taken meanwhile')
    },
  }
}
