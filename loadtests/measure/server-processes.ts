// The processes of PostgreSQL and Redis, where they run on this machine: their time belongs to what a login costs.
import { readProc } from '@spillway/local/processes/proc'
import { findProcess } from '@spillway/local/processes/process-table'
import { connectDatabase } from '@spillway/prisma'
import { Redis } from 'ioredis'
import type { Part, Services } from '../contenders/contender.ts'

/** Empty where they run elsewhere, or where there is no /proc. */
export async function serverProcesses({ databaseUrl, redisUrl }: Services): Promise<Part[]> {
  const [postgres, redis] = await Promise.all([postmaster(databaseUrl), redisPid(redisUrl)])
  return [
    ...(named(postgres, /postgres/) ? [{ role: 'postgres', pid: postgres, withChildren: true }] : []),
    ...(named(redis, /redis|valkey/) ? [{ role: 'redis', pid: redis }] : []),
  ]
}

async function postmaster(url: string): Promise<number> {
  const database = connectDatabase({ url, poolSize: 1, connectionTimeoutMs: 60_000 })
  try {
    const [backend] = await database.$queryRaw<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`
    return findProcess(backend?.pid ?? 0)?.parentPid ?? 0
  } finally {
    await database.$disconnect()
  }
}

async function redisPid(url: string): Promise<number> {
  const redis = new Redis(url)
  try {
    return Number(/^process_id:(\d+)/m.exec(await redis.info('server'))?.[1])
  } finally {
    redis.disconnect()
  }
}

/** A server on another machine also has a process id, but here it would be somebody else's. */
function named(pid: number, name: RegExp): boolean {
  return name.test(readProc(`${pid}/comm`) ?? '')
}
