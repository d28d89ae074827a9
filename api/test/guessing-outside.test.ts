// The challenge of another service: what it is asked, what its word does, and what happens when it says nothing.
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { assertProblem, expect, login, newAccount } from './client.ts'
import { openSystem } from './system.ts'

/** Answers as siteverify does: `good…` is good, `broken…` fails, `silent…` is never answered. */
const asked: Record<string, string>[] = []
const verifier: Server = createServer(async (request, response) => {
  const form = Object.fromEntries(new URLSearchParams(await text(request)))
  asked.push(form)
  const { response: token = '' } = form
  if (token.startsWith('silent')) return
  response.statusCode = token.startsWith('broken') ? 500 : 200
  response.end(JSON.stringify({ success: token.startsWith('good'), 'error-codes': [] }))
})
await new Promise<void>((resolve) => verifier.listen(0, '127.0.0.1', resolve))
const address = verifier.address()
if (typeof address !== 'object' || address === null) throw new Error('the verifier does not listen')

const system = await openSystem()
after(async () => {
  await system.close()
  verifier.closeAllConnections()
  verifier.close()
})
await system.worker()
const challenged = {
  GUESSES_PER_ACCOUNT: '1',
  CHALLENGE_VERIFY_URL: `http://127.0.0.1:${address.port}/siteverify`,
  CHALLENGE_SECRET: 'our secret there',
  CHALLENGE_SITE_KEY: 'site-1',
}
const [{ url }, { url: there }] = await Promise.all([system.gateway(challenged), system.gateway(challenged)])
const answering = (answer: string) => ({ headers: { 'spillway-challenge': answer } })

/** An account on which a stranger failed. */
async function guessed() {
  const owner = await newAccount(url)
  assertProblem(await login(url, { ...owner, password: 'a guess' }), 401, 'invalid_credentials')
  return owner
}

test('clients are told where to get a token, and its word lets one login in', async () => {
  const owner = await guessed()
  const refused = await login(url, owner)
  assertProblem(refused, 429, 'challenge_required')
  assert.deepEqual(refused.body.challenge, { kind: 'outside', siteKey: 'site-1' })
  assertProblem(await login(url, owner, answering('bad token')), 429, 'challenge_required')
  const wrong = { ...owner, password: 'a guess' }
  assertProblem(await login(url, wrong, answering('good token')), 401, 'invalid_credentials')
  assertProblem(await login(url, owner, answering('good token')), 429, 'challenge_required')
  expect(200, await login(url, owner, answering('good token 2')))
  assert.deepEqual(asked.at(-1), { secret: 'our secret there', response: 'good token 2', remoteip: '127.0.0.1' })
})

test('a token lets in one of a hundred that show it at once, at two gateways, though the service calls each good', async () => {
  const owner = await guessed()
  const wrong = { ...owner, password: 'a guess' }
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, n) => login(n % 2 ? url : there, wrong, answering('good token 3'))),
  )
  assert.equal(answers.filter(({ status }) => status === 401).length, 1)
  // On a machine that is busy the service may not be heard in time for some.
  for (const { status, body } of answers)
    assert.ok(status === 401 || ['challenge_required', 'unavailable', 'busy'].includes(body.code), `${status}`)
})

test('while the service fails or is silent nobody gets past it, and known devices do not need it', async () => {
  const owner = await newAccount(url)
  const { deviceToken } = expect(200, await login(url, owner))
  assertProblem(await login(url, { ...owner, password: 'a guess' }), 401, 'invalid_credentials')
  for (const token of ['broken', 'silent']) assertProblem(await login(url, owner, answering(token)), 503, 'unavailable')
  expect(200, await login(url, owner, { headers: { 'spillway-device': deviceToken } }))
  const before = asked.length
  assertProblem(await login(url, owner, answering('x'.repeat(9_000))), 429, 'challenge_required')
  assert.equal(asked.length, before)
})
