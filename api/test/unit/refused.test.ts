// What is counted of requests that an overloaded gateway refuses before it handles them.
import assert from 'node:assert/strict'
import { fastify } from 'fastify'
import { afterAll, test } from 'vitest'
import { loadSheddingPlugin } from '../../src/plugins/load-shedding/plugin.ts'
import { GatewayMetrics } from '../../src/plugins/metrics.ts'

const metrics = new GatewayMetrics([])
const app = fastify()
afterAll(() => app.close())
await app.register(loadSheddingPlugin, {
  shedder: {
    admits: () => false,
    begin: async () => undefined,
    isBehind: () => true,
    isShedding: () => true,
    perSecond: () => 100,
    inHand: () => 0,
    delayMs: () => 0,
  },
  metrics,
  bodyLimitBytes: 100,
})
app.get('/known', async () => 'here')
const url = await app.listen({ port: 0 })

test('a refused request is counted by its route, and one that has none by no name of its own', async () => {
  const requests: [method: string, path: string][] = [
    ['GET', '/known'],
    ['GET', '/known?by=somebody'],
    ['POST', '/known'],
    ['GET', '/made/up'],
  ]
  const answers = await Promise.all(requests.map(([method, path]) => fetch(url + path, { method })))
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([503]))
  const { values } = await metrics.requests.get()
  assert.deepEqual(
    values.map(({ labels: { method, route }, value }) => [method, route, value]),
    [
      ['GET', '/known', 2],
      ['POST', 'none', 1],
      ['GET', 'none', 1],
    ],
  )
})

test('the connection of a refused request stays open for its retry, unless the body is too large to be read', async () => {
  const post = (length: number) => fetch(`${url}/known`, { method: 'POST', body: 'x'.repeat(length) })
  const answers = await Promise.all([100, 101].map(post))
  assert.deepEqual(
    answers.map(({ headers }) => headers.get('connection')),
    ['keep-alive', 'close'],
  )
})
