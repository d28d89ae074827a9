// The proxy that tests and chaos put in front of servers does to connections what it says.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type TestContext, test } from 'vitest'
import { listening } from '../../src/processes/port.ts'
import { until } from '../../src/processes/until.ts'
import { startProxy } from '../../src/rig/tcp-proxy.ts'

/** An echo server, a proxy before it, and connections that note what they hear. */
async function scene(t: TestContext) {
  const accepted = new Set<Socket>()
  const server = createServer((socket) => {
    accepted.add(socket.on('error', () => undefined))
    socket.on('close', () => accepted.delete(socket)).pipe(socket)
  })
  const port = await listening(server)
  t.onTestFinished(() => void server.close())
  const proxy = await startProxy(`echo://127.0.0.1:${port}`)
  t.onTestFinished(() => proxy.close())
  const open = () => {
    const socket = connect(Number(new URL(proxy.url).port), '127.0.0.1')
    const state = { socket, heard: '' }
    socket.on('data', (bytes) => (state.heard += bytes)).on('error', () => undefined)
    t.onTestFinished(() => void socket.destroy())
    return state
  }
  return { proxy, open, accepted }
}

/** Resolves when a connection has carried this there and back. */
async function echoed(connection: { socket: Socket; heard: string }, word: string): Promise<void> {
  connection.socket.write(word)
  await until(() => connection.heard.endsWith(word))
}

test('connections are ended, and new ones pass or are ended as well', async (t) => {
  const { proxy, open, accepted } = await scene(t)
  const first = open()
  await echoed(first, 'hello')
  proxy.cut()
  await until(() => first.socket.destroyed && accepted.size === 0)
  const second = open()
  await echoed(second, 'hello')
  proxy.refuse()
  await until(() => second.socket.destroyed)
  const third = open()
  await until(() => third.socket.destroyed)
  proxy.restore()
  await echoed(open(), 'hello')
})

test('frozen connections keep what they are given, and deliver it when they are restored', async (t) => {
  const { proxy, open, accepted } = await scene(t)
  const early = open()
  await echoed(early, 'hello')
  proxy.freeze()
  const late = open()
  early.socket.write(' early')
  late.socket.write('late')
  await sleep(50)
  assert.deepEqual([early.heard, late.heard], ['hello', ''])
  proxy.restore()
  await until(() => early.heard === 'hello early' && late.heard === 'late')

  proxy.freeze()
  early.socket.destroy()
  await sleep(50)
  assert.equal(accepted.size, 2, 'the other end was told')
  proxy.restore()
  await until(() => accepted.size === 1)
})

test('connections that are frozen by themselves leave new ones alone', async (t) => {
  const { proxy, open } = await scene(t)
  const [all, replies] = [open(), open()]
  await echoed(all, 'a')
  proxy.freezeReplies()
  all.socket.write('b')
  proxy.freezeOpen()
  await echoed(open(), 'hello')
  assert.equal(all.heard, 'a')
  proxy.restore()
  await until(() => all.heard === 'ab')
  await echoed(replies, 'hello')
})

test('delayed bytes arrive later and in order, and before the end of the connection', async (t) => {
  const { proxy, open } = await scene(t)
  const connection = open()
  await echoed(connection, '0')
  proxy.delayMs = 50
  const sentAt = performance.now()
  connection.socket.write('1')
  await sleep(10)
  proxy.delayMs = 0
  connection.socket.end('2')
  await once(connection.socket, 'close')
  assert.equal(connection.heard, '012')
  assert.ok(performance.now() - sentAt >= 50)
})
