// Stored hashes that were made with a secret of the operator: for whom workers verify them.
import assert from 'node:assert/strict'
import { createHmac, randomBytes } from 'node:crypto'
import { createPasswordsWith } from '@spillway/client/application/create-passwords'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { accountWithHash } from '../account.ts'
import { assertProblem, expect } from '../client.ts'
import { openSystem } from '../system.ts'

const newKey = () => randomBytes(32).toString('base64')
const [shop, crm, secret] = [newKey(), newKey(), 'a pepper of sixteen']
const system = await openSystem()
const peppers = { PASSWORD_PEPPERS: `pep:${Buffer.from(secret).toString('base64')}` }
await system.worker({ ...peppers, KEYED_HASHES_FOR: 'crm' })
const { api, service } = await system.gateway({ SERVICE_KEYS: `shop:${shop},crm:${crm}`, SERVICE_PORT: '0' })

const password = 'correct horse'
const post = (path: string, body: object, token = shop) => service.call('POST', path, { token, body })
const verify = (storedHash: string, token: string) => post('/v1/passwords/verify', { password, storedHash }, token)
const isMatch = async (storedHash: string, token: string) =>
  ({ match: undefined, ...expect(200, await verify(storedHash, token)) }).match

const { hash: plain } = { hash: '', ...expect(200, await post('/v1/passwords/hash', { password: password + secret })) }
const mac = createHmac('sha256', secret).update(password).digest('hex')
const { hash: ofMac } = { hash: '', ...expect(200, await post('/v1/passwords/hash', { password: mac })) }
const keyed = { 'pepper:NAME': plain, 'hmac-sha256:NAME': ofMac, 'nfc,pepper:NAME': plain }
const storedHashOf = (steps: string, inner: string, name = 'pep') => `$of$${steps.replace('NAME', name)}$${inner}`

test('accounts of the gateway, and a service that the operator named, have them verified', async () => {
  for (const [steps, inner] of Object.entries(keyed)) {
    const storedHash = storedHashOf(steps, inner)
    expect(200, await api.login(await accountWithHash(system.database, storedHash, password)))
    assert.equal(await isMatch(storedHash, crm), true)
  }
})

test('for any other service a name that the operator has and one that nobody has are the same', async () => {
  for (const [steps, inner] of Object.entries(keyed)) {
    const answers = [
      await verify(storedHashOf(steps, inner), shop),
      await verify(storedHashOf(steps, inner, 'nobody'), shop),
    ]
    for (const answer of answers) assertProblem(answer, 422, 'unsupported_hash')
    const [known, unknown] = answers.map(({ body }) => ({ ...body, requestId: '' }))
    assert.deepEqual(known, unknown)
  }
  // Steps without a secret are for everybody.
  assert.equal(await isMatch(storedHashOf('nfc', plain), shop), false)
})

test('an application on the queue has them verified only where the operator named applications', async (t) => {
  const { REDIS_URL: redis, QUEUE_PREFIX: queuePrefix, SPILLWAY_SEAL_KEYS: sealKeys } = system.environment
  const passwords = createPasswordsWith(new URL('file:///nowhere'), { redis, queuePrefix, sealKeys })
  t.onTestFinished(() => passwords.close())
  await until(() => passwords.capacity().slots > 0, { what: 'the worker' })
  const unsupported: string[] = []
  const isRight = (name: string) =>
    passwords.verify(password, storedHashOf('pepper:NAME', plain, name), {
      onUnsupported: () => void unsupported.push(name),
    })
  assert.deepEqual([await isRight('pep'), await isRight('nobody')], [false, false])
  assert.deepEqual(unsupported, ['pep', 'nobody'])
})
