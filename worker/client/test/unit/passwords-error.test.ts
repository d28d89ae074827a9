// What a web framework answers when a route lets an error of passwords through.
import assert from 'node:assert/strict'
import { PasswordsError, type PasswordsErrorCode } from '@spillway/client/application/passwords-error'
import { fastify } from 'fastify'
import { test } from 'vitest'

test('a framework answers 503 with Retry-After to what may succeed later, and 500 to the rest', async (t) => {
  const app = fastify()
  t.onTestFinished(() => app.close())
  app.get<{ Querystring: { code: PasswordsErrorCode; ms?: number } }>('/', async ({ query: { code, ms } }) => {
    throw new PasswordsError(code, 'of the test', ms === undefined ? {} : { retryAfterMs: Number(ms) })
  })
  const answers = []
  for (const query of [
    'code=busy&ms=1200',
    'code=no_worker&ms=1000',
    'code=expired',
    'code=queue_unavailable',
    'code=hashing_failed',
  ]) {
    const { statusCode, headers } = await app.inject(`/?${query}`)
    answers.push([statusCode, headers['retry-after']])
  }
  assert.deepEqual(answers, [
    [503, '2'],
    [503, '1'],
    [503, undefined],
    [503, undefined],
    [500, undefined],
  ])
})
