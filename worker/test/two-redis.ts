// Two Redis that a file of tests has to itself, and spaces of one prefix in both.
import assert from 'node:assert/strict'
import type { PasswordClient, PendingJob } from '@spillway/queue/queue-client'
import type { TestContext } from 'vitest'
import { startOwnRedisServer } from './own-redis.ts'
import { answerOf } from './parts.ts'
import { type Space, spaceFor } from './space.ts'

export async function startTwoRedis() {
  const servers = [await startOwnRedisServer(), await startOwnRedisServer()] as const
  return {
    servers,
    /** As REDIS_URL has them. */
    both: servers.map(({ url }) => url).join(' '),
    spaces(t: TestContext): [Space, Space] {
      const all = [spaceFor(t, servers[0].url), spaceFor(t, servers[1].url)] as const
      // Connections of the test itself are refused while a server is down.
      for (const { redis } of all) redis.on('error', () => undefined)
      return [all[0], { ...all[1], prefix: all[0].prefix }]
    },
  }
}

/** A verify that takes so long, with the right password. */
export const waitFor = (ms: number) => ({ password: 'right', storedHash: `$spillway-wait$${ms}$` })

export function submitAll(client: PasswordClient, jobs: number, ms: number): Promise<PendingJob[]> {
  return Promise.all(Array.from({ length: jobs }, () => client.submit('verify', waitFor(ms))))
}

/** Resolves with the job once it is answered. */
export async function isAnswered(client: PasswordClient, ms = 1, fault?: string): Promise<PendingJob['job']> {
  const pending = await client.submit('verify', waitFor(ms))
  assert.deepEqual(await answerOf(pending), { kind: 'match' }, fault)
  return pending.job
}
