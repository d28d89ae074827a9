// Liveness is progress: a worker whose connection brings no reply is found by its probe, as a
// kubelet would ask it, and the one that is started in its place does the work. A Redis that
// answers nobody is no reason to restart anything.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { createLogger } from '@spillway/common/log'
import { until } from '@spillway/infra/processes/until'
import { createNamespace, type Namespace } from '@spillway/infra/rig/namespace'
import { startProxy, type TcpProxy } from '@spillway/infra/rig/tcp-proxy'
import { type Member, startMember, workerProgram } from '@spillway/infra/start/member'
import { createPasswordClient, parseKeyring } from '@spillway/queue/queue-client'
import { test } from 'vitest'

const STUCK_AFTER_MS = 1_500

interface Scene {
  namespace: Namespace
  proxy: TcpProxy
  sealKeys: string
  /** Starts a worker that reaches Redis through the proxy alone. */
  worker(): Promise<Member>
}

async function scene(play: (scene: Scene) => Promise<void>): Promise<void> {
  const namespace = await createNamespace()
  const proxy = await startProxy(namespace.redisUrl)
  const sealKeys = `test:${randomBytes(32).toString('base64')}`
  const workers: Member[] = []
  const env = {
    REDIS_URL: proxy.url,
    QUEUE_PREFIX: namespace.queuePrefix,
    SPILLWAY_SEAL_KEYS: sealKeys,
    OPS_PORT: '0',
    WORKER_CONCURRENCY: '1',
    ARGON2_MEMORY_KIB: '1024',
    ARGON2_TIME: '1',
    STUCK_AFTER_MS: String(STUCK_AFTER_MS),
    SHUTDOWN_GRACE_MS: '500',
  }
  const worker = async () => {
    const started = await startMember(workerProgram, { env })
    workers.push(started)
    return started
  }
  try {
    await play({ namespace, proxy, sealKeys, worker })
  } finally {
    await Promise.all(workers.map((started) => started.close()))
    await proxy.close()
    await namespace.close()
  }
}

const healthz = async (opsUrl: string) => (await fetch(`${opsUrl}/healthz`)).status

test.concurrent('a worker whose connections bring no reply is found by its probe, and its successor does the waiting job', async () => {
  await scene(async ({ namespace, proxy, sealKeys, worker }) => {
    const wedged = await worker()
    assert.equal(await healthz(wedged.opsUrl), 200)
    // Frozen connections would be replaced by their socket's timeout.
    proxy.trickleReplies()

    const client = createPasswordClient({
      redisUrl: namespace.redisUrl,
      prefix: namespace.queuePrefix,
      keyring: parseKeyring(sealKeys),
      jobLifeMs: 60_000,
      log: createLogger({ service: 'test', level: 'silent' }),
    })
    try {
      await until(() => client.isReady())
      const pending = await client.submit('hash', { password: 'a passphrase' })
      await until(async () => (await healthz(wedged.opsUrl)) === 503, { what: 'a failing probe' })
      const metrics = await (await fetch(`${wedged.opsUrl}/metrics`)).text()
      const [, stuck] = /^spillway_worker_stuck_seconds (.*)$/m.exec(metrics) ?? []
      assert.ok(Number(stuck) >= STUCK_AFTER_MS / 1_000, `stuck for ${stuck} s`)

      // As a kubelet does: ends it, and starts it again.
      assert.deepEqual(await wedged.stop(), { code: 0, signal: null })
      const restarted = await worker()
      const answer = await pending.answer({ waitMs: 60_000, signal: new AbortController().signal })
      assert.equal(typeof answer === 'object' && answer.kind, 'hashed')
      assert.equal(await healthz(restarted.opsUrl), 200)
    } finally {
      await client.close()
    }
  })
})

test.concurrent('a worker stays alive while Redis answers nobody', async () => {
  await scene(async ({ proxy, worker }) => {
    const { opsUrl } = await worker()
    proxy.freeze()
    const deadline = Date.now() + 3 * STUCK_AFTER_MS
    const answers = new Set<number>()
    await until(async () => {
      answers.add(await healthz(opsUrl))
      return Date.now() > deadline
    })
    assert.deepEqual([...answers], [200])
  })
})
