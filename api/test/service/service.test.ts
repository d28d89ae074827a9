// The service API: verifying and hashing for applications that keep their own users.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { test } from 'vitest'
import { type Answer, asIs, assertProblem, expect, respondAsync } from '../client.ts'
import { watchQueue } from '../queue.ts'
import { type Clients, shareSystem, startQuietly } from '../system.ts'

const newKey = () => randomBytes(32).toString('base64')
const [shop, shopNext, crm] = [newKey(), newKey(), newKey()]
const keys = { SERVICE_KEYS: `shop:${shop},shop:${shopNext},crm:${crm}`, SERVICE_PORT: '0' }
/** bcrypt of `old passphrase`, at cost 4. */
const bcryptHash = '$2b$04$yno1TDfZqJWZYn3G1alY9.UdzM2FchEFDKrQt77XqKAnAwvYWJDCO'
const cheap = { algorithm: 'argon2id', memoryKib: 64, time: 1 }

interface Verification {
  match: boolean
  newHash?: string
}

const system = await shareSystem()
const gateway = await system.gateway(keys)
const { service } = gateway

type Options = { token?: string; headers?: Record<string, string> }

const post = (path: string, body: object, options: Options = {}, at = service): Promise<Answer> =>
  at.call('POST', path, { token: shop, ...options, body })

async function verify(body: object, options?: Options): Promise<Verification> {
  const { status, body: verification } = await post('/v1/passwords/verify', body, options)
  assert.equal(status, 200, JSON.stringify(verification))
  const { match, newHash } = { match: undefined, newHash: undefined, ...verification }
  return { match: match === true, ...(newHash === undefined ? {} : { newHash: String(newHash) }) }
}

async function hash(body: object): Promise<string> {
  const { hash } = { hash: undefined, ...expect(200, await post('/v1/passwords/hash', body)) }
  return String(hash)
}

test('a hash that was made here verifies here, and no other password does', async () => {
  for (const policy of [undefined, cheap, { algorithm: 'bcrypt', cost: 4 }]) {
    const storedHash = await hash({ password: 'pässword ✓', ...(policy && { policy }) })
    assert.match(storedHash, policy?.algorithm === 'bcrypt' ? /^\$2b\$04\$/ : /^\$argon2id\$v=19\$/)
    assert.deepEqual(await verify({ password: 'pässword ✓', storedHash }), { match: true })
    assert.deepEqual(await verify({ password: 'pässword', storedHash }), { match: false })
  }
})

test('the password of an unknown user never matches', async () => {
  assert.deepEqual(await verify({ password: 'old passphrase', storedHash: null, rehash: true }), { match: false })
})

test('a match of a weaker hash comes with a new one of the policy, if that is asked for', async () => {
  const weaker = { password: 'old passphrase', storedHash: bcryptHash }
  assert.deepEqual(await verify(weaker), { match: true })
  const { newHash = '' } = await verify({ ...weaker, rehash: true, policy: cheap })
  assert.match(newHash, /^\$argon2id\$v=19\$m=64,t=1,p=1\$/)
  const stored = { password: 'old passphrase', storedHash: newHash, rehash: true, policy: cheap }
  assert.deepEqual(await verify(stored), { match: true })
  assert.deepEqual(await verify({ ...weaker, password: 'wrong', rehash: true }), { match: false })
})

test('a match tells which hash it is of, at once and by a ticket: the password may have been changed meanwhile', async () => {
  const body = { password: 'old passphrase', storedHash: bcryptHash }
  const expected = { match: true, hashDigest: createHash('sha256').update(bcryptHash).digest('base64') }
  assert.deepEqual(expect(200, await post('/v1/passwords/verify', body)), expected)
  const { ticket } = expect(202, await post('/v1/passwords/verify', body, respondAsync))
  assert.deepEqual(expect(200, await service.redeem(ticket, { token: shop })), expected)
})

test('a password is hashed as the bytes that it is: nothing is normalized or trimmed', async () => {
  const storedHash = await hash({ password: ' \u212b', policy: cheap })
  for (const [password, match] of [
    [' \u212b', true],
    [' \u00c5', false],
    ['\u212b', false],
  ] as const) {
    assert.deepEqual(await verify({ password, storedHash }), { match }, JSON.stringify(password))
  }
  const empty = await hash({ password: '', policy: cheap })
  assert.deepEqual(await verify({ password: '', storedHash: empty }), { match: true })
})

test('only a key of the list is accepted, each of a service that has two', async () => {
  const body = { password: 'x', storedHash: null }
  for (const token of [shop, shopNext, crm]) await verify(body, { token })
  assert.equal((await post('/v1/passwords/verify', body, { token: toUrl(shop) })).status, 200)
  const strangers = [newKey(), shop.slice(0, -4), `shop:${shop}`, '']
  for (const token of strangers) {
    const answers = [
      await post('/v1/passwords/verify', body, { token }),
      await post('/v1/passwords/hash', { password: 'x' }, { token }),
      await service.redeem('anything', { token }),
      await service.call('GET', '/v1/line', { token }),
    ]
    for (const answer of answers) {
      assertProblem(answer, 401, 'invalid_service_key')
      assert.equal(answer.headers.get('www-authenticate'), 'Bearer')
    }
  }
  assertProblem(
    await service.call('POST', '/v1/passwords/hash', { body: { password: 'x' } }),
    401,
    'invalid_service_key',
  )
})

test('how far the line has come is told to services alone', async () => {
  assertProblem(await service.call('GET', '/v1/line'), 401, 'invalid_service_key')
  const told = await service.call('GET', '/v1/line', { token: shop })
  assert.ok(Number.isInteger(expect(200, told).serving))
  const headers = { 'if-none-match': told.headers.get('etag') ?? '' }
  assertProblem(await service.call('GET', '/v1/line', { headers }), 401, 'invalid_service_key')
})

test('a ticket answers once, to any key of its service and to nobody else', async () => {
  const { ticket } = expect(202, await post('/v1/passwords/verify', { password: 'x', storedHash: null }, respondAsync))
  assertProblem(await service.redeem(ticket, { token: crm, ...asIs }), 400, 'invalid_ticket')
  assertProblem(await gateway.api.redeem(ticket), 400, 'invalid_ticket')
  assert.deepEqual(expect(200, await service.redeem(ticket, { token: shopNext })), { match: false })
  assertProblem(await service.redeem(ticket, { token: shop }), 409, 'ticket_used')

  const account = await gateway.api.newAccount()
  const { ticket: ofLogin } = expect(202, await gateway.api.login(account, respondAsync))
  assertProblem(await service.redeem(ofLogin, { token: shop }), 400, 'invalid_ticket')
  expect(200, await gateway.api.redeem(ofLogin))
})

test('a service is limited by its name, whichever of its keys and gateways it uses', async () => {
  const limited = { ...keys, LIMIT_PER_SERVICE: '3' }
  const [here, there] = await Promise.all([system.gateway(limited), system.gateway(limited)])
  const ask = (at: Clients, token: string) =>
    post('/v1/passwords/verify', { password: 'x', storedHash: null }, { token, ...respondAsync }, at.service)
  const left = []
  for (const [at, token] of [
    [here, shop],
    [there, shopNext],
    [here, shopNext],
  ] as const) {
    const { status, headers } = await ask(at, token)
    left.push([status, headers.get('ratelimit-remaining')])
  }
  assert.deepEqual(left, [
    [202, '2'],
    [202, '1'],
    [202, '0'],
  ])
  const refused = await ask(there, shop)
  assertProblem(refused, 429, 'too_many_requests')
  assert.ok(Number(refused.headers.get('retry-after')) >= 1)
  assert.equal((await ask(there, crm)).status, 202)
})

test('redemptions are limited as well, by the name of the service, and not by its other requests', async () => {
  const limited = { ...keys, LIMIT_PER_SERVICE: '3' }
  const [here, there] = await Promise.all([system.gateway(limited), system.gateway(limited)])
  const body = { password: 'x', storedHash: null }
  const ask = () => post('/v1/passwords/verify', body, { token: crm, ...respondAsync }, here.service)
  // The limit of the test before was counted for another service.
  const { ticket } = expect(202, await ask())
  await Promise.all([ask(), ask(), ask()])
  assertProblem(await ask(), 429, 'too_many_requests')
  const redeemAt = ({ service }: Clients) => service.redeem(ticket, { token: crm, ...asIs })
  const answers = [await redeemAt(here), await redeemAt(there), await redeemAt(here)]
  const remaining = answers.map(({ headers }) => headers.get('ratelimit-remaining'))
  assert.deepEqual(remaining, ['2', '1', '0'])
  const refused = await redeemAt(there)
  assertProblem(refused, 429, 'too_many_requests')
  assert.ok(Number(refused.headers.get('retry-after')) >= 1)
})

test('what cannot be hashed or verified is refused by field, before it is queued', async () => {
  const { added } = watchQueue(system)
  const before = await added()
  const bcrypt = { algorithm: 'bcrypt', cost: 4 }
  for (const [path, body, field] of [
    ['hash', { password: 'x'.repeat(3_073) }, 'password'],
    ['hash', { password: 'half \ud800' }, 'password'],
    ['hash', {}, 'password'],
    ['hash', { password: 'x'.repeat(73), policy: bcrypt }, 'password'],
    ['hash', { password: 'nul \0', policy: bcrypt }, 'password'],
    ['hash', { password: 'x', policy: { algorithm: 'md5' } }, 'policy'],
    ['hash', { password: 'x', policy: { ...bcrypt, memoryKib: 64 } }, 'memoryKib'],
    ['hash', { password: 'x', policy: { algorithm: 'argon2id', memoryKib: 8, parallelism: 4 } }, 'policy'],
    ['verify', { password: 'x' }, 'storedHash'],
    ['verify', { password: 'x', storedHash: 'x'.repeat(1_025) }, 'storedHash'],
    ['verify', { password: 'x', storedHash: null, user: 'ada' }, 'user'],
  ] as const) {
    const answer = await post(`/v1/passwords/${path}`, body)
    assertProblem(answer, 422, 'invalid_request')
    const fields = answer.body.errors.map((error) => error.field)
    assert.deepEqual(fields, [field], JSON.stringify(body).slice(0, 80))
  }
  assert.deepEqual(await added(), before)
})

test('the longest password is hashed and verified, of the worst characters too', async () => {
  for (const character of ['\0', '✓']) {
    const password = character.repeat(3_072 / Buffer.byteLength(character))
    const storedHash = await hash({ password, policy: cheap })
    assert.deepEqual(await verify({ password, storedHash }), { match: true }, JSON.stringify(character))
  }
})

test('a stored hash that no worker verifies is said to be one', async () => {
  for (const storedHash of ['', '$argon2id$v=19$m=9999999,t=1,p=1$c29tZXNhbHQ$aGFzaGhhc2g']) {
    assertProblem(await post('/v1/passwords/verify', { password: 'x', storedHash }), 422, 'unsupported_hash')
  }
})

test('a body that is not UTF-8 is refused', async () => {
  const body = Buffer.concat([Buffer.from('{"password":"'), Buffer.from([0xef, 0xf0]), Buffer.from('"}')])
  const headers = { authorization: `Bearer ${shop}`, 'content-type': 'application/json' }
  const { status } = await fetch(`${service.url}/v1/passwords/hash`, { method: 'POST', headers, body })
  assert.equal(status, 400)
})

test('the public port has nothing of it, and without keys there is no such port', async () => {
  assertProblem(
    await post('/v1/passwords/verify', { password: 'x', storedHash: null }, {}, gateway.api),
    404,
    'not_found',
  )
  assert.equal((await system.gateway()).serviceUrl, undefined)
})

test('keys that can be guessed or are none are refused at start, by name and without a part of them', async () => {
  const { environment } = system
  for (const list of [`shop:${Buffer.alloc(32, 'ab').toString('base64')}`, 'shop:c2hvcnQ=', shop, `shop:${shop},`]) {
    await assert.rejects(
      async () => startQuietly({ ...environment, SERVICE_KEYS: list }),
      (error: Error) => error.message.includes('SERVICE_KEYS') && !error.message.includes(list.slice(5, 20)),
      list,
    )
  }
})

function toUrl(base64: string): string {
  return Buffer.from(base64, 'base64').toString('base64url')
}
