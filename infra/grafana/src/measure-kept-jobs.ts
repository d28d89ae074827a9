// The command `pnpm measure:kept-jobs`: what the finished jobs that are kept for operators take of Redis's memory.
import { randomBytes } from 'node:crypto'
import { createPasswordClient, parseKeyring } from '@spillway/client'
import { until } from '@spillway/local/testing'
import { createLogger } from '@spillway/worker/log'
import { Redis } from 'ioredis'
import { runWithServices } from './run-with-services.ts'
import { openScene, type Scene } from './scene.ts'

/** More than are kept of each kind. */
const JOBS = 600

async function finishJobs({ redisUrl, queuePrefix: prefix }: Scene, sealKeys: string): Promise<void> {
  const client = createPasswordClient({
    redisUrl,
    prefix,
    keyring: parseKeyring(sealKeys),
    jobLifeMs: 600_000,
    log: createLogger({ service: 'measure', level: 'silent' }),
  })
  await until(() => client.isReady())
  for (let job = 0; job < JOBS; job++) await client.submit('verify', { password: 'a passphrase', storedHash: null })
  await client.close()
}

process.exitCode = await runWithServices(async () => {
  const scene = await openScene({ ARGON2_MEMORY_KIB: '8' })
  const redis = new Redis(scene.redisUrl)
  const key = (name: string) => `${scene.queuePrefix}:passwords:${name}`
  try {
    await scene.worker({ env: { WORKER_CONCURRENCY: '8' } })
    await finishJobs(scene, scene.sealKeys)
    await finishJobs(scene, `foreign:${randomBytes(32).toString('base64')}`)
    await until(async () => (await redis.llen(key('wait'))) + (await redis.llen(key('active'))) === 0, {
      timeoutMs: 60_000,
    })

    let total = 0
    for (const set of ['completed', 'failed']) {
      const ids = await redis.zrange(key(set), '0', '-1')
      const sizes = await Promise.all([set, ...ids].map((name) => redis.memory('USAGE', key(name), 'SAMPLES', '0')))
      const bytes = sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0)
      total += bytes
      console.log(
        `${set.padEnd(9)} ${ids.length} jobs kept: ${kib(bytes)}, ${Math.round(bytes / ids.length)} bytes each`,
      )
    }
    const events = (await redis.memory('USAGE', key('events'), 'SAMPLES', '0')) ?? 0
    console.log(`together  ${kib(total)}; BullMQ's stream of events beside them: ${kib(events)}`)
    return 0
  } finally {
    redis.disconnect()
    await scene.close()
  }
})

function kib(bytes: number): string {
  return `${Math.round(bytes / 1_024).toLocaleString('en')} KiB`
}
