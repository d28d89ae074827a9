// The processes of PostgreSQL and Redis, where they run on this machine: their time belongs to what a login costs.
import { findPids } from '@spillway/local/processes/process-table'
import type { Part, Services } from '../contenders/contender.ts'

/** Finds embedded servers by their ports; of PostgreSQL, the process that starts all others. */
export function serverProcesses({ databaseUrl, redisUrl }: Services): Part[] {
  const [postgres] = findPids('postgres', `-p ${new URL(databaseUrl).port}`)
  const [redis] = findPids('-server', `:${new URL(redisUrl).port}`)
  return [
    ...(postgres === undefined ? [] : [{ role: 'postgres', pid: postgres, withChildren: true }]),
    ...(redis === undefined ? [] : [{ role: 'redis', pid: redis }]),
  ]
}
