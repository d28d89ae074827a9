// A ticket answers once, whatever its operation does: of many redemptions at once, and after its result was
// put back into Redis.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { serviceEndpoints } from '../../src/passwords/service.ts'
import { endpoints } from '../../src/servers.ts'
import {
  type Answer,
  assertProblem,
  type Client,
  type Credentials,
  expect,
  NEXT,
  newCredentials,
  respondAsync,
} from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { openSystem } from '../system.ts'

const mails = await startMailServer()
const system = await openSystem()
await system.worker()
const serviceKey = randomBytes(32).toString('base64')
const env = { ...mails.env, SERVICE_KEYS: `shop:${serviceKey}`, SERVICE_PORT: '0' }
const gateways = [await system.gateway(env), await system.gateway(env)]
const { api, service } = gateways[0] ?? assert.fail()
/** Redemptions of a ticket at each gateway at once. */
const HELD = 8

/** Who asks, and an address that is free. */
interface Asking {
  account: Credentials
  accessToken: string
  other: Credentials
}

const askService = (path: string, body: object) =>
  service.call('POST', path, { ...respondAsync, token: serviceKey, body })
const users = (where: object) => system.database.user.count({ where })
const isChanged = ({ account: { email } }: Asking) => users({ email, credentialVersion: 2 })

interface Ticket {
  ask(asking: Asking): Promise<Answer>
  /** Of the answer. */
  status: number
  /** What is there once, after the ticket was redeemed. */
  counts?(asking: Asking, mailsBefore: number): Promise<number>
}

const tickets: Record<string, Ticket> = {
  register: {
    ask: ({ other }) => api.register(other, respondAsync),
    status: 201,
    counts: ({ other: { email } }) => users({ email }),
  },
  login: {
    ask: ({ account }) => api.login(account, respondAsync),
    status: 200,
    // Beside the session that asks for the other tickets.
    counts: async ({ account: { email } }) => (await system.database.session.count({ where: { user: { email } } })) - 1,
  },
  change_password: {
    ask: ({ account, accessToken }) => api.changePassword(accessToken, account.password, NEXT, respondAsync),
    status: 204,
    counts: isChanged,
  },
  reset_password: {
    async ask({ account: { email } }) {
      await api.forgotten(email)
      const { token } = await mails.next(email, /Choose a new password/)
      return api.resetPassword(token, NEXT, respondAsync)
    },
    status: 200,
    counts: isChanged,
  },
  change_email: {
    ask: ({ account, accessToken, other }) => api.changeEmail(accessToken, other.email, account.password, respondAsync),
    status: 204,
    async counts({ other: { email } }, mailsBefore) {
      await mails.next(email, /./)
      return (await mailsAdded()) - mailsBefore
    },
  },
  verify_password: {
    ask: ({ account, accessToken }) => api.verifyPassword(accessToken, account.password, respondAsync),
    status: 204,
  },
  delete_account: {
    ask: ({ account, accessToken }) => api.deleteAccount(accessToken, account.password, respondAsync),
    status: 204,
    counts: async ({ account: { email } }) => 1 - (await users({ email })),
  },
  service_verify: { ask: () => askService('/v1/passwords/verify', { password: 'x', storedHash: null }), status: 200 },
  service_hash: { ask: () => askService('/v1/passwords/hash', { password: 'x' }), status: 200 },
}

const placesOf = (kind: string) => gateways.map(({ api, service }) => (kind.startsWith('service_') ? service : api))
const redeemAt = (place: Client, ticket: string) => place.redeem(ticket, { token: serviceKey })
const resultKeyOf = (ticket: string) => `${system.namespace.queuePrefix}:result:${ticket.split('.')[0]}`
const resultOf = (ticket: string) => until(() => system.redis.get(resultKeyOf(ticket)))
const putBack = (ticket: string, result: string) => system.redis.set(resultKeyOf(ticket), result, 'PX', 60_000)

/** Redeems a ticket at all places at once, as often as these hold it; one is answered, with this status. */
async function assertOneAnswered(places: Client[], ticket: string, status: number): Promise<void> {
  const asked = places.flatMap((place) => Array.from({ length: HELD }, () => redeemAt(place, ticket)))
  const statuses = (await Promise.all(asked)).map((answer) => answer.status)
  assert.deepEqual(statuses.sort(), [status, ...Array.from({ length: 2 * HELD - 1 }, () => 409)])
}

async function mailsAdded(): Promise<number> {
  const entries = await system.redis.xrange(`${system.namespace.queuePrefix}:mail:events`, '-', '+')
  return entries.filter(([, fields]) => fields[fields.indexOf('event') + 1] === 'added').length
}

test('every endpoint of both APIs is here', () => {
  assert.deepEqual(
    Object.keys(tickets).sort(),
    [...endpoints, ...serviceEndpoints].map(({ route }) => route.kind).sort(),
  )
})

for (const [kind, { ask, status, counts }] of Object.entries(tickets)) {
  test(`${kind}: of many redemptions at two gateways one is answered, and none after the result was put back`, async () => {
    const asking = { ...(await api.signedIn()), other: newCredentials() }
    const { ticket } = expect(202, await ask(asking))
    const result = await resultOf(ticket)
    const mailsBefore = await mailsAdded()
    await assertOneAnswered(placesOf(kind), ticket, status)
    for (const place of placesOf(kind)) {
      await putBack(ticket, result)
      assertProblem(await redeemAt(place, ticket), 409, 'ticket_used')
    }
    if (counts) assert.equal(await counts(asking, mailsBefore), 1)
  })
}

test('of many redemptions of the ticket of a registration without mail one makes the account', async () => {
  const places = [(await system.gateway()).api, (await system.gateway()).api] as const
  const { email, password } = newCredentials()
  const { ticket } = expect(202, await places[0].register({ email, password }, respondAsync))
  await resultOf(ticket)
  await assertOneAnswered([...places], ticket, 201)
  assert.equal(await users({ email }), 1)
})

test('an account that was deleted does not come back by the ticket of its registration', async () => {
  const credentials = newCredentials()
  const { ticket } = expect(202, await api.register(credentials, respondAsync))
  const result = await resultOf(ticket)
  expect(201, await api.redeem(ticket))
  const { accessToken } = expect(200, await api.login(credentials))
  expect(204, await api.deleteAccount(accessToken, credentials.password))
  await putBack(ticket, result)
  assertProblem(await api.redeem(ticket), 409, 'ticket_used')
  assert.equal(await users({ email: credentials.email }), 0)
})

test('a refusal uses a ticket as well: a wrong password is told once', async () => {
  const { email } = await api.newAccount()
  const { ticket } = expect(202, await api.login({ email, password: 'wrong' }, respondAsync))
  const result = await resultOf(ticket)
  assertProblem(await api.redeem(ticket), 401, 'invalid_credentials')
  await putBack(ticket, result)
  assertProblem(await api.redeem(ticket), 409, 'ticket_used')
})
