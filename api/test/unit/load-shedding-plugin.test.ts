// A gateway that is behind tells known devices by the heads of their requests.
import assert from 'node:assert/strict'
import { fastify } from 'fastify'
import { afterAll, test } from 'vitest'
import { ApiError } from '../../src/plugins/errors.ts'
import { LoadShedder, type Priority } from '../../src/plugins/load-shedding/load-shedder.ts'
import { loadSheddingPlugin } from '../../src/plugins/load-shedding/plugin.ts'
import { GatewayMetrics } from '../../src/plugins/metrics.ts'
import { problemPlugin } from '../../src/plugins/problems.ts'
import { type ErrorCode, problems } from '../../src/schemas/problem-codes.ts'

test('requests of known devices go first while a gateway is behind, and then alone', async (t) => {
  let isBehind = false
  const asked: Priority[] = []
  class Observed extends LoadShedder {
    override isBehind(): boolean {
      return isBehind
    }
    override admits(priority: Priority): boolean {
      asked.push(priority)
      return true
    }
    override begin(priority: Priority, isGone: () => boolean) {
      asked.push(priority)
      return super.begin(priority, isGone)
    }
  }
  const app = fastify()
  t.onTestFinished(() => app.close())
  await app.register(loadSheddingPlugin, {
    shedder: new Observed(10),
    metrics: new GatewayMetrics([]),
    bodyLimitBytes: 1_000,
    deviceOf: ({ 'x-device': device }) => (typeof device === 'string' ? device : undefined),
  })
  app.get('/new', async () => 'done')
  app.get('/light', { config: { isLight: true } }, async () => 'done')
  app.get('/promised', { config: { priority: 'promised' } }, async () => 'done')
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  async function prioritiesOf(path: string, headers: Record<string, string> = {}): Promise<Priority[]> {
    assert.equal((await fetch(url + path, { headers })).status, 200)
    return asked.splice(0)
  }

  assert.deepEqual(await prioritiesOf('/new', { 'x-device': 'one' }), ['new', 'new'])
  assert.deepEqual(await prioritiesOf('/light'), ['new', 'new'])
  isBehind = true
  assert.deepEqual(await prioritiesOf('/new'), ['new', 'new'])
  assert.deepEqual(await prioritiesOf('/new', { 'x-device': 'one' }), ['known', 'known'])
  // Paths with a wildcard are known only when Fastify has found the route.
  assert.deepEqual(await prioritiesOf('/light'), ['new', 'known'])
  assert.deepEqual(await prioritiesOf('/promised', { 'x-device': 'two' }), ['promised', 'promised'])
})

// What is counted of requests that an overloaded gateway refuses before it handles them.

const metrics = new GatewayMetrics([])
const refusing = fastify()
afterAll(() => refusing.close())
await refusing.register(loadSheddingPlugin, {
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
refusing.get('/known', async () => 'here')
const url = await refusing.listen({ port: 0 })

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
  const connections = answers.map(({ headers }) => headers.get('connection'))
  assert.deepEqual(connections, ['keep-alive', 'close'])
})

// Which answers are held when many come at once: those that anybody causes without a hash.

const app = fastify()
afterAll(() => app.close())
const shedder = new LoadShedder(10)
await app.register(loadSheddingPlugin, { shedder, metrics: new GatewayMetrics([]), bodyLimitBytes: 100 })
await app.register(problemPlugin)
app.get<{ Params: { code: ErrorCode } }>('/problem/:code', async ({ params: { code } }) => {
  throw new ApiError(code)
})
app.get('/mismatch', async (request) => {
  request.jobId = 'a job'
  throw new ApiError('invalid_credentials')
})
app.get('/vain', async (request) => {
  request.isInVain = true
  return 'done'
})
app.get('/done', async () => 'done')
const ask = async (path: string) => (await app.inject(path)).statusCode
// Otherwise the plugin takes it for one that closes.
await app.listen({ port: 0 })

/** Beyond the hundred of each kind that are answered at once. */
const MANY = 1_000

/** Sends many, and returns how many were answered when one of the other path was. */
async function answeredBefore(path: string, other: string): Promise<number> {
  let answered = 0
  for (let n = 0; n < MANY; n += 1) void ask(path).then(() => (answered += 1))
  await ask(other)
  return answered
}

test('what was made up, malformed or asked in vain is answered a hundred times at once, and then in its time', async () => {
  assert.equal(await ask('/problem/invalid_ticket'), 400)
  assert.ok((await answeredBefore('/problem/invalid_ticket', '/done')) < MANY)
  const held: string[] = []
  for (const path of ['/nowhere', '/vain', '/problem/invalid_token']) void ask(path).then(() => held.push(path))
  assert.equal(await ask('/mismatch'), 401)
  assert.equal(await ask('/problem/challenge_required'), problems.challenge_required.status)
  assert.equal(await ask('/problem/internal_error'), 500)
  assert.equal(await ask('/problem/busy'), 503)
  assert.deepEqual(held, [])
  assert.ok((await answeredBefore('/problem/too_many_requests', '/done')) < MANY)
})
