// The challenge of another service: what it is asked, what its word does, and its silence.
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import { text } from 'node:stream/consumers'
import { listening } from '@spillway/infra/processes/port'
import { until } from '@spillway/infra/processes/until'
import { readMetric } from '@spillway/infra/rig/api-client'
import { afterAll, test } from 'vitest'
import { type Answer, assertProblem, expect } from '../client.ts'
import { shareSystem } from '../system.ts'

/** Answers as siteverify does: `good…`, `broken…` fails, `silent…` never, `held…` once released */
const asked: Record<string, string>[] = []
const held: (() => void)[] = []
const verifier: Server = createServer(async (request, response) => {
  const form = Object.fromEntries(new URLSearchParams(await text(request)))
  asked.push(form)
  const { response: token = '' } = form
  if (token.startsWith('silent')) return
  if (token.startsWith('held')) await new Promise<void>((resolve) => held.push(resolve))
  response.statusCode = token.startsWith('broken') ? 500 : 200
  response.end(JSON.stringify({ success: token.startsWith('good'), 'error-codes': [] }))
})
const port = await listening(verifier)

afterAll(() => {
  verifier.closeAllConnections()
  verifier.close()
})
const system = await shareSystem()
const challenged = {
  GUESSES_PER_ACCOUNT: '1',
  CHALLENGE_VERIFY_URL: `http://127.0.0.1:${port}/siteverify`,
  CHALLENGE_SECRET: 'our secret there',
  CHALLENGE_SITE_KEY: 'site-1',
}
const { api } = await system.gateway(challenged)
const answering = (answer: string) => ({ headers: { 'spillway-challenge': answer } })

/** An account on which a stranger failed. */
async function guessed() {
  const owner = await api.newAccount()
  assertProblem(await api.login({ ...owner, password: 'a guess' }), 401, 'invalid_credentials')
  return owner
}

test('clients are told where to get a token, and its word lets one login in', async () => {
  const owner = await guessed()
  const refused = await api.login(owner)
  assertProblem(refused, 429, 'challenge_required')
  assert.deepEqual(refused.body.challenge, { kind: 'outside', siteKey: 'site-1' })
  assertProblem(await api.login(owner, answering('bad token')), 429, 'challenge_required')
  const wrong = { ...owner, password: 'a guess' }
  assertProblem(await api.login(wrong, answering('good token')), 401, 'invalid_credentials')
  assertProblem(await api.login(owner, answering('good token')), 429, 'challenge_required')
  expect(200, await api.login(owner, answering('good token 2')))
  assert.deepEqual(asked.at(-1), { secret: 'our secret there', response: 'good token 2', remoteip: '127.0.0.1' })
})

test('while the service fails or is silent nobody gets past it, and known devices do not need it', async () => {
  const { account: owner, deviceToken } = await api.signedIn()
  assertProblem(await api.login({ ...owner, password: 'a guess' }), 401, 'invalid_credentials')
  for (const token of ['broken', 'silent']) assertProblem(await api.login(owner, answering(token)), 503, 'unavailable')
  expect(200, await api.login(owner, { headers: { 'spillway-device': deviceToken } }))
  const before = asked.length
  assertProblem(await api.login(owner, answering('x'.repeat(9_000))), 429, 'challenge_required')
  assert.equal(asked.length, before)
})

test('a login that needs no challenge does not ask the service, whatever it sends', async () => {
  const owner = await api.newAccount()
  const before = asked.length
  const { deviceToken } = expect(200, await api.login(owner, answering('silent')))
  assertProblem(await api.login({ ...owner, password: 'a guess' }), 401, 'invalid_credentials')
  const headers = { 'spillway-device': deviceToken, 'spillway-challenge': 'silent' }
  expect(200, await api.login(owner, { headers }))
  assert.equal(asked.length, before)
})

test('fifty tokens are checked at a time, without a place in hand; the next login is told to come again', async () => {
  const gateway = await system.gateway(challenged)
  const owner = await guessed()
  let isOver = false
  /** A check is given up after three seconds: then another one takes its place. */
  async function keepPlace(_: unknown, n: number): Promise<Answer> {
    const answer = await gateway.api.login(owner, answering(`held ${n}`))
    return isOver ? answer : await keepPlace(_, n)
  }
  const waiting = Array.from({ length: 50 }, keepPlace)
  let tokens = 0
  const attempt = () => gateway.api.login({ ...owner, password: 'a guess' }, answering(`good at last ${tokens++}`))
  const refused = await until(
    async () => {
      const answer = await attempt()
      // On a machine that is busy the service may not be heard in time.
      return answer.status === 401 || answer.body.code === 'unavailable' ? undefined : answer
    },
    { what: 'fifty tokens that are checked' },
  )
  assertProblem(refused, 503, 'busy')
  assert.equal(refused.headers.get('retry-after'), '1')
  await until(async () => (await readMetric(gateway.opsUrl, 'spillway_requests_in_hand')) === 0)
  isOver = true
  for (const release of held.splice(0)) release()
  for (const { status, body } of await Promise.all(waiting))
    assert.ok(['challenge_required', 'unavailable'].includes(body.code), `${status}`)
  expect(200, await gateway.api.login(owner, answering('good token 4')))
})
