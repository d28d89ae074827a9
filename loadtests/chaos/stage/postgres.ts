// A PostgreSQL that scenarios may kill and start again.

import { join } from 'node:path'
import type { Keeper } from '@spillway/local/processes/keeper'
import { isRunning } from '@spillway/local/processes/process-table'
import { until } from '@spillway/local/processes/until'
import { startPostgres } from '@spillway/local/services/postgres'
import { query, withDatabase } from '@spillway/local/services/query'
import { migrate } from '@spillway/local/start/migrate'

export interface PostgresServer {
  host: string
  port: number
  /** Of a migrated database. */
  url: string
  /** Of the process that starts all others. */
  pid(): Promise<number>
  /** SIGKILL, and until it is gone. */
  kill(): Promise<void>
  /** Starts it again on the same port and data; resolves when it answers. */
  start(): Promise<void>
}

export async function startPostgresServer(keeper: Keeper, dir: string): Promise<PostgresServer> {
  const options = {
    keeper,
    dir: join(dir, 'postgres'),
    logFile: join(dir, 'postgres.log'),
    password: 'chaos',
    durable: false,
    say: console.log,
  }
  const { url: given } = await startPostgres({ ...options, preferredPort: 0 })
  const url = withDatabase(given, 'chaos')
  const { hostname: host, port } = new URL(url)
  await migrate(keeper, url)

  async function pidNow(): Promise<number> {
    const [row] = await query(url, `SELECT pg_read_file('postmaster.pid') AS file`)
    return Number.parseInt(String(row?.file), 10)
  }

  return {
    host,
    port: Number(port),
    url,
    pid: pidNow,
    async kill() {
      const pid = await pidNow()
      process.kill(pid, 'SIGKILL')
      await until(() => !isRunning(pid), { what: 'the end of PostgreSQL' })
    },
    async start() {
      const { url: again } = await startPostgres({ ...options, preferredPort: Number(port) })
      if (new URL(again).port !== port) throw new Error('the port of PostgreSQL was taken meanwhile')
    },
  }
}
