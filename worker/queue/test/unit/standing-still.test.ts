// A process that gets no processor for longer than its commands may take, while Redis answers.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { type TestContext, test } from 'vitest'
import { OwnRedis } from '../../src/inside/ioredis.ts'

/** In a thread of its own: answers whatever comes, and counts its answers where this thread can wait for one without a turn. */
const server = `
  const { createServer } = require('node:net')
  const { parentPort, workerData: answers } = require('node:worker_threads')
  const answer = (socket) => socket.write('+OK\\r\\n', () => {
    Atomics.add(answers, 0, 1)
    Atomics.notify(answers, 0)
  })
  const server = createServer((socket) => socket.on('data', () => answer(socket)).on('error', () => undefined))
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))`

const TIMEOUT_MS = 50

async function scene(t: TestContext) {
  const answers = new Int32Array(new SharedArrayBuffer(4))
  const thread = new Worker(server, { eval: true, workerData: answers })
  t.onTestFinished(async () => void (await thread.terminate()))
  const [port = 0]: number[] = await once(thread, 'message')
  return {
    options: { port, protocol: 2, enableReadyCheck: false, disableClientInfo: true } as const,
    /** Stands still until the server has answered, and all timers are due. */
    standStill() {
      Atomics.wait(answers, 0, 0)
      Atomics.wait(answers, 0, 1, 2 * TIMEOUT_MS)
    },
  }
}

for (const option of ['commandTimeout', 'socketTimeout'] as const) {
  test(`${option}: what has come meanwhile is read first`, async (t) => {
    const { options, standStill } = await scene(t)
    const redis = new OwnRedis({ ...options, [option]: TIMEOUT_MS, retryStrategy: null })
    t.onTestFinished(() => redis.disconnect())
    await once(redis, 'ready')
    const answer = redis.get('a')
    // The commands of a turn are written at its end.
    await new Promise((resolve) => setImmediate(resolve))
    standStill()
    assert.equal(await answer, 'OK')
  })
}
