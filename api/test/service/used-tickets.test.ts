// A ticket answers once, whatever its operation does: of many redemptions at once, after its
// verdict was put back into Redis, and after a worker that was stopped has answered its job again.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { serviceOperations } from '../../src/operations/service-passwords.ts'
import { operations } from '../../src/servers.ts'
import {
  type Answer,
  assertProblem,
  type Body,
  type Client,
  type Credentials,
  expect,
  newCredentials,
  patiently,
  respondAsync,
} from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { openSystem } from '../system.ts'

const mails = await startMailServer()
const system = await openSystem()
const worker = await system.worker()
const serviceKey = randomBytes(32).toString('base64')
const env = { ...mails.env, SERVICE_KEYS: `shop:${serviceKey}`, SERVICE_PORT: '0' }
const gateways = [await system.gateway(env), await system.gateway(env)]
const { api, service } = gateways[0] ?? assert.fail()
const NEXT = 'another pass phrase entirely'
/** As many as a gateway holds for one ticket. */
const HELD = 8

interface SignedIn extends Credentials {
  session: Body
}

async function signedIn(): Promise<SignedIn> {
  const credentials = await api.newAccount()
  return { ...credentials, session: expect(200, await api.login(credentials)) }
}

const ask = (method: string, path: string, body: object, { session }: SignedIn) =>
  api.call(method, path, { ...respondAsync, token: session.accessToken, body })
const askService = (path: string, body: object) =>
  service.call('POST', path, { ...respondAsync, token: serviceKey, body })

/** By operation: a request for its ticket, and the status of its answer. */
const tickets: Record<string, { ask(): Promise<Answer>; status: number }> = {
  register: { ask: () => api.register(newCredentials(), respondAsync), status: 201 },
  login: { ask: async () => api.login(await api.newAccount(), respondAsync), status: 200 },
  change_password: {
    async ask() {
      const user = await signedIn()
      return ask('PUT', '/v1/me/password', { currentPassword: user.password, newPassword: NEXT }, user)
    },
    status: 204,
  },
  reset_password: {
    async ask() {
      const { email } = await api.newAccount()
      await api.call('POST', '/v1/password/forgotten', { body: { email } })
      const { token } = await mails.next(email, /Choose a new password/)
      return api.call('POST', '/v1/password/reset', { ...respondAsync, body: { token, newPassword: NEXT } })
    },
    status: 204,
  },
  change_email: {
    async ask() {
      const user = await signedIn()
      return ask('PUT', '/v1/me/email', { newEmail: newCredentials().email, password: user.password }, user)
    },
    status: 204,
  },
  verify_password: {
    async ask() {
      const user = await signedIn()
      return ask('POST', '/v1/me/password/verify', { password: user.password }, user)
    },
    status: 204,
  },
  delete_account: {
    async ask() {
      const user = await signedIn()
      return ask('POST', '/v1/me/delete', { password: user.password }, user)
    },
    status: 204,
  },
  service_verify: { ask: () => askService('/v1/passwords/verify', { password: 'x', storedHash: null }), status: 200 },
  service_hash: { ask: () => askService('/v1/passwords/hash', { password: 'x' }), status: 200 },
}

const placesOf = (kind: string) => gateways.map(({ api, service }) => (kind.startsWith('service_') ? service : api))
const redeemAt = (place: Client, ticket: string) => place.redeem(ticket, { token: serviceKey })
const verdictKeyOf = (ticket: string) => `${system.namespace.queuePrefix}:verdict:${ticket.split('.')[0]}`
const verdictOf = (ticket: string) => until(() => system.redis.get(verdictKeyOf(ticket)))
const putBack = (ticket: string, verdict: string) => system.redis.set(verdictKeyOf(ticket), verdict, 'PX', 60_000)

test('every operation of both APIs is here', () => {
  assert.deepEqual(Object.keys(tickets).sort(), [...operations, ...serviceOperations].map(({ kind }) => kind).sort())
})

for (const [kind, { ask, status }] of Object.entries(tickets)) {
  test(`${kind}: of many redemptions at two gateways one is answered, and none after the verdict was put back`, async () => {
    const { ticket } = expect(202, await ask())
    const verdict = await verdictOf(ticket)
    const places = placesOf(kind)
    const asked = places.flatMap((place) => Array.from({ length: HELD }, () => redeemAt(place, ticket)))
    const statuses = (await Promise.all(asked)).map((answer) => answer.status)
    assert.deepEqual(statuses.sort(), [status, ...Array.from({ length: 2 * HELD - 1 }, () => 409)])
    for (const place of places) {
      await putBack(ticket, verdict)
      assertProblem(await redeemAt(place, ticket), 409, 'ticket_used')
    }
  })
}

test('an account that was deleted does not come back by the ticket of its registration', async () => {
  const credentials = newCredentials()
  const { ticket } = expect(202, await api.register(credentials, respondAsync))
  const verdict = await verdictOf(ticket)
  expect(201, await api.redeem(ticket))
  const session = expect(200, await api.login(credentials))
  const { password } = credentials
  const deletion = await api.call('POST', '/v1/me/delete', { token: session.accessToken, body: { password } })
  assert.ok([202, 204].includes(deletion.status))
  if (deletion.status === 202) expect(204, await api.redeem(deletion.body.ticket))
  await putBack(ticket, verdict)
  assertProblem(await api.redeem(ticket), 409, 'ticket_used')
  assert.equal(await system.database.user.count({ where: { email: credentials.email } }), 0)
})

test('a refusal uses a ticket as well: a wrong password is told once', async () => {
  const { email } = await api.newAccount()
  const { ticket } = expect(202, await api.login({ email, password: 'wrong' }, respondAsync))
  const verdict = await verdictOf(ticket)
  assertProblem(await api.redeem(ticket), 401, 'invalid_credentials')
  await putBack(ticket, verdict)
  assertProblem(await api.redeem(ticket), 409, 'ticket_used')
})

test('a worker that was stopped with the job answers it again, and the ticket stays used', async () => {
  // At a cost that takes longer than it takes to stop the worker.
  const policy = { algorithm: 'bcrypt', cost: 12 }
  const { ticket } = expect(202, await askService('/v1/passwords/hash', { password: 'x', policy }))
  await until(() => system.redis.llen(`${system.namespace.queuePrefix}:passwords:active`))
  worker.signal('SIGSTOP')
  const other = await system.worker()
  const verdict = await until(async () => system.redis.get(verdictKeyOf(ticket)))
  const { body } = await patiently(() => redeemAt(service, ticket))
  assert.ok('hash' in body)
  worker.signal('SIGCONT')
  await until(async () => (await system.redis.get(verdictKeyOf(ticket))) !== verdict)
  for (const place of placesOf('service_hash')) assertProblem(await redeemAt(place, ticket), 409, 'ticket_used')
  assert.equal(other.exit, undefined)
})
