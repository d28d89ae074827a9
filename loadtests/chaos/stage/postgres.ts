// A PostgreSQL that scenarios may kill and start again.
import { join } from 'node:path'
import type { Keeper } from '@spillway/local/processes/keeper'
import { isRunning } from '@spillway/local/processes/process-table'
import { until } from '@spillway/local/processes/until'
import { startPostgres } from '@spillway/local/services/postgres'
import { query } from '@spillway/local/services/query'
import type { OwnServices } from '@spillway/local/testing/services'

export interface PostgresServer {
  /** Of a migrated database. */
  url: string
  /** Of the process that starts all others. */
  pid(): Promise<number>
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>
  /** Starts it again on the same port and data; resolves when it answers. */
  start(): Promise<void>
}

/** The PostgreSQL of services that were started for this run. */
export function restartablePostgres(keeper: Keeper, { dir, databaseUrl: url }: OwnServices): PostgresServer {
  const { port, password } = new URL(url)
  async function pid(): Promise<number> {
    const [row] = await query(url, `SELECT pg_read_file('postmaster.pid') AS file`)
    return Number.parseInt(String(row?.file), 10)
  }
  return {
    url,
    pid,
    async kill() {
      const running = await pid()
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
