// The worker as a process: what it says, what it serves, and the threads it hashes on.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { getPriority } from 'node:os'
import { readMetric } from '@spillway/infra/harness/api-client'
import { startProcess } from '@spillway/infra/processes/node-process'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { NATIVE_NAME } from '../../src/hashing/native.ts'
import { clientFor, jobsAreCounted, resultOf, submit, workerEnvironment } from '../parts.ts'
import { spaceFor } from '../space.ts'
import { entry, startedWorkerProcess } from '../worker-process.ts'

async function get(
  { opsUrl }: { opsUrl: string },
  path: string,
  method = 'GET',
): Promise<[status: number, body: string]> {
  const response = await fetch(opsUrl + path, { method })
  return [response.status, await response.text()]
}

test('when it is ready it says where its probes are and how many jobs it does at a time; it serves them and metrics, and nothing else', async (t) => {
  const { space, client } = await clientFor(t)
  const worker = await startedWorkerProcess(space, { WORKER_CONCURRENCY: '3' })
  const ready = await worker.waitForLog(({ msg }) => msg === 'worker ready')
  assert.equal(ready.concurrency, 3)
  assert.equal(ready.service, 'worker')
  assert.equal(ready.pid, worker.pid)
  assert.match(String(ready.opsUrl), /^http:\/\/127\.0\.0\.1:\d+$/)

  await resultOf(await submit(client, 'hash', { password: 'x' }))
  await jobsAreCounted(worker, 'hash hashed 1')
  assert.deepEqual(await get(worker, '/healthz'), [200, 'ok\n'])
  await until(async () => (await get(worker, '/readyz')).join() === '200,ok\n')
  const [status, metrics] = await get(worker, '/metrics')
  assert.equal(status, 200)
  assert.match(metrics, /^spillway_jobs_total\{job="hash",outcome="hashed"\} 1$/m)
  assert.match(metrics, /^spillway_queue_wait_seconds_count\{job="hash"\} 1$/m)
  assert.match(metrics, /^process_cpu_seconds_total /m)
  const newSpaceBytes = await readMetric(worker.opsUrl, 'nodejs_heap_space_size_total_bytes', 'space="new"')
  assert.ok(newSpaceBytes > 2 ** 21 && newSpaceBytes <= 2 ** 23, `${newSpaceBytes} bytes for new objects`)
  for (const path of ['/', '/queues', '/healthz/', '/constructor', '/toString'])
    assert.equal((await get(worker, path))[0], 404, path)
  assert.equal((await get(worker, '/metrics', 'POST'))[0], 405)
})

test.skipIf(withoutProc())(
  'it hashes on as many threads as it has slots, its own or those of the pool that has two more, with the share of a core that others have',
  async (t) => {
    const space = spaceFor(t)
    // A process that leaves libuv's pool alone has Node's own threads and no others.
    const idle = startProcess({ entry: 'idle', nodeArgs: ['-e', "console.log('idle'); setInterval(() => {}, 1_000)"] })
    space.closing(() => idle.close())
    await idle.waitForLog(({ msg }) => msg === 'idle')
    const sizes: [slots: number, env: Record<string, string>][] = [
      [1, { CPU_LIMIT_MILLICORES: '1900', HASH_ENGINE: 'packages' }],
      [7, { WORKER_CONCURRENCY: '7', UV_THREADPOOL_SIZE: '3' }],
    ]
    for (const [slots, env] of sizes) {
      const worker = startProcess({ entry, env: { ...workerEnvironment(space), ...env } })
      space.closing(() => worker.close())
      const ready = await worker.waitForLog(({ msg }) => msg === 'worker ready')
      assert.equal(ready.concurrency, slots)
      const own = JSON.stringify(ready.engines).includes(NATIVE_NAME) ? slots : 0
      const { msg: hashing } = await worker.waitForLog(({ msg }) => String(msg).startsWith('hashing with '))
      if (env.HASH_ENGINE === 'packages')
        assert.match(String(hashing), /time; HASH_ENGINE=native turns worker\/engine on$/)
      else if (own > 0) assert.match(String(hashing), /; HASH_ENGINE=packages turns worker\/engine off$/)
      else assert.doesNotMatch(String(hashing), /HASH_ENGINE/)
      if (env.HASH_ENGINE === 'packages') assert.equal(own, 0)
      assert.equal(threads(worker) - threads(idle), slots + 2 + own)
      assert.equal(threadsStandingBack(worker), 0)
    }
  },
)

function withoutProc(): string | false {
  return process.platform === 'linux' ? false : 'threads are counted in /proc, which only Linux has'
}

function threadsStandingBack({ pid }: { pid: number }): number {
  return readdirSync(`/proc/${pid}/task`).filter((thread) => getPriority(Number(thread)) > getPriority()).length
}

function threads({ pid }: { pid: number }): number {
  return readdirSync(`/proc/${pid}/task`).length
}
