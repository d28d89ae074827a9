// The command `pnpm --filter @spillway/grafana kept-jobs`: the memory that finished jobs, which are kept for operators, take in Redis.
import { newSealKey, until } from '@spillway/local/rig'
import { Redis } from 'ioredis'
import { openClient, openScene, runWithServices, type Scene } from './scene.ts'

/** More than are kept of each kind. */
const JOBS = 600

async function finishJobs(scene: Scene, sealKeys: string): Promise<void> {
  const client = await openClient(scene, { sealKeys, jobLifeMs: 600_000 })
  for (let job = 0; job < JOBS; job++) await client.submit('verify', { password: 'a passphrase', storedHash: null })
  await client.close()
}

await runWithServices(async () => {
  const scene = await openScene({ ARGON2_MEMORY_KIB: '8' })
  const redis = new Redis(scene.redisUrl)
  const key = (name: string) => `${scene.queuePrefix}:passwords:${name}`
  try {
    await scene.worker({ env: { WORKER_CONCURRENCY: '8' } })
    await finishJobs(scene, scene.sealKeys)
    await finishJobs(scene, newSealKey('foreign'))
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
  } finally {
    redis.disconnect()
    await scene.close()
  }
})

function kib(bytes: number): string {
  return `${Math.round(bytes / 1_024).toLocaleString('en')} KiB`
}
