// Whose answers are held when many come at once: what anybody can send on and on, for which nothing is hashed.
import assert from 'node:assert/strict'
import { fastify } from 'fastify'
import { afterAll, test } from 'vitest'
import { ApiError } from '../../src/plugins/errors.ts'
import { LoadShedder } from '../../src/plugins/load-shedding/load-shedder.ts'
import { loadSheddingPlugin } from '../../src/plugins/load-shedding/plugin.ts'
import { GatewayMetrics } from '../../src/plugins/metrics.ts'
import { problemPlugin } from '../../src/plugins/problems.ts'
import { type ErrorCode, problems } from '../../src/schemas/problem-codes.ts'

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
