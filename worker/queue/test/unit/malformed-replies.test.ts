// A Redis, or something in its place, that sends what nobody asked for.
import assert from 'node:assert/strict'
import { createServer, type Socket } from 'node:net'
import { listening } from '@spillway/infra/processes/port'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { connectRedis } from '../../src/redis/connect.ts'

/** Answers like a Redis that knows nothing, and sends these bytes once, on its first connection. */
async function startServer(bytes: string) {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => undefined)
    socket.on('data', (data) => {
      for (const command of data.toString().split(/(?=\*\d+\r\n\$)/)) {
        if (/hello/i.test(command)) socket.write('%1\r\n$5\r\nproto\r\n:3\r\n')
        else if (/\r\ninfo\r\n/i.test(command)) socket.write('$15\r\nredis_version:7\r\n')
        else socket.write('+OK\r\n')
      }
    })
  })
  return {
    url: `redis://127.0.0.1:${await listening(server)}`,
    connections: () => sockets.length,
    send: () => sockets[0]?.write(bytes),
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

for (const bytes of [
  '$-1\r\n',
  '_\r\n',
  '>1\r\n$9\r\nsubscribe\r\n',
  '+OK\r\n',
  ':1\r\n',
  '!',
  '\x00\xff\r\n',
  '*1\r\n*1\r\n$-1\r\n',
]) {
  test.concurrent(`${JSON.stringify(bytes)} ends at most the connection, which is made again`, async (t) => {
    const server = await startServer(bytes)
    const redis = connectRedis(server.url, 'producer').on('error', () => undefined)
    t.onTestFinished(() => {
      redis.disconnect()
      server.close()
    })
    await until(() => redis.status === 'ready')
    server.send()
    server.send()
    // An uncaught error would fail the test.
    await until(async () => redis.status === 'ready' && (await redis.set('a', 'b').catch(() => undefined)) === 'OK')
  })
}

test.concurrent('of many that come together the first ends the connection, and the others are not read', async (t) => {
  const server = await startServer('>1\r\n$9\r\nsubscribe\r\n'.repeat(20))
  const errors: Error[] = []
  const redis = connectRedis(server.url, 'producer').on('error', (error) => errors.push(error))
  t.onTestFinished(() => {
    redis.disconnect()
    server.close()
  })
  await until(() => redis.status === 'ready')
  server.send()
  await until(() => server.connections() === 2 && redis.status === 'ready')
  assert.equal(errors.length, 1)
})
