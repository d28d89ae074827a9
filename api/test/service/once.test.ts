// What counts once, shown a hundred times at once at two gateways: tickets, and a password.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import {
  type Answer,
  type Body,
  type Call,
  type Client,
  type Credentials,
  expect,
  newCredentials,
  patiently,
  respondAsync,
} from '../client.ts'
import { startMailServer } from '../mail-server.ts'
import { shareSystem } from '../system.ts'

const mails = await startMailServer()
const system = await shareSystem()
const [{ api: here }, { api: there }] = await Promise.all([system.gateway(mails.env), system.gateway(mails.env)])
const NEXT = 'another pass phrase entirely'

/** The answers, with one word for each: `won`, or the code of its problem */
async function hundredAtOnce(ask: (api: Client, n: number) => Promise<Answer>) {
  const answers = await Promise.all(Array.from({ length: 100 }, (_, n) => ended(() => ask(n % 2 ? here : there, n))))
  return { answers, words: answers.map(({ status, body }) => (status < 300 ? 'won' : body.code)) }
}

/** Asks again while the answer is that the job goes on. */
async function ended(ask: () => Promise<Answer>): Promise<Answer> {
  const answer = await patiently(ask)
  return answer.body.ticket === undefined ? answer : ended(ask)
}

function assertOneWon(words: string[], others: string[]): void {
  assert.equal(words.filter((word) => word === 'won').length, 1, words.join())
  assert.deepEqual(
    words.filter((word) => word !== 'won' && !others.includes(word)),
    [],
  )
}

interface Once {
  credentials: Credentials
  session: Body
}

const count = (where: object) => system.database.user.count({ where })

/** Asks for the ticket; codes that a redemption may get beside ticket_used; what holds once won */
const operations: Record<
  string,
  { ask(once: Once): Promise<Answer>; others: string[]; won(once: Once): Promise<void> }
> = {
  login: {
    ask: ({ credentials }) => here.login(credentials, respondAsync),
    others: [],
    async won({ credentials: { email } }) {
      assert.equal(await system.database.session.count({ where: { user: { email } } }), 2)
    },
  },
  'change of the password': {
    ask: ({ credentials, session }) =>
      here.changePassword(session.accessToken, change(credentials, NEXT), respondAsync),
    others: [],
    async won({ credentials: { email } }) {
      assert.equal(await count({ email, credentialVersion: 2 }), 1)
    },
  },
  'reset of the password': {
    async ask({ credentials: { email } }) {
      await there.call('POST', '/v1/password/forgotten', { body: { email } })
      const { token } = await mails.next(email, /Choose a new password/)
      return await here.call('POST', '/v1/password/reset', { ...respondAsync, body: { token, newPassword: NEXT } })
    },
    others: ['invalid_mail_token'],
    async won({ credentials: { email } }) {
      assert.equal(await count({ email, credentialVersion: 2 }), 1)
    },
  },
  deletion: {
    ask: ({ credentials: { password }, session }) => post('/v1/me/delete', { password }, session),
    others: ['invalid_token', 'invalid_credentials'],
    async won({ credentials: { email } }) {
      assert.equal(await count({ email }), 0)
    },
  },
}

const change = ({ password: currentPassword }: Credentials, newPassword: string) => ({ currentPassword, newPassword })
const post = (path: string, body: object, { accessToken: token }: Body, options: Call = respondAsync) =>
  here.call('POST', path, { ...options, token, body })

/** Some connections that redeem one ticket are held at a gateway; others are told to come later. */
const TOLD_TO_WAIT = 'too_many_requests'

for (const [name, { ask, others, won }] of Object.entries(operations)) {
  test(`the ticket of a ${name} answers one of a hundred`, async () => {
    const credentials = await here.newAccount()
    const once = { credentials, session: expect(200, await here.login(credentials)) }
    const { ticket } = expect(202, await ask(once))
    const { words } = await hundredAtOnce((api) => api.redeem(ticket))
    assertOneWon(words, ['ticket_used', TOLD_TO_WAIT, ...others])
    await won(once)
  })
}

test('the ticket of a registration answers one of a hundred, whether mail is on or not', async () => {
  const withoutMail = await Promise.all([system.gateway(), system.gateway()])
  for (const [first, second] of [[here, there], withoutMail.map(({ api }) => api)]) {
    const credentials = newCredentials()
    assert.ok(first && second)
    const { ticket } = expect(202, await first.register(credentials, respondAsync))
    const { words } = await hundredAtOnce((_, n) => (n % 2 ? first : second).redeem(ticket))
    assertOneWon(words, ['ticket_used', TOLD_TO_WAIT])
    assert.equal(await count({ email: credentials.email }), 1)
  }
})

test('of a hundred changes of a password at once one wins, its password is the one, and its session goes on', async () => {
  const credentials = await here.newAccount()
  const { accessToken } = expect(200, await here.login(credentials))
  const { answers, words } = await hundredAtOnce((api, n) =>
    api.changePassword(accessToken, change(credentials, `${NEXT} ${n}`)),
  )
  assertOneWon(words, ['invalid_credentials'])
  const winner = answers.findIndex(({ status }) => status === 204)
  expect(200, await here.login({ ...credentials, password: `${NEXT} ${winner}` }))
  expect(200, await there.me(accessToken))
})

test('the ticket of a change of the address sends one mail, however many redeem it', async () => {
  const { password, ...session } = await signedIn()
  const { email: newEmail } = newCredentials()
  const body = { newEmail, password }
  const { ticket } = expect(202, await here.call('PUT', '/v1/me/email', { ...respondAsync, ...session, body }))
  const before = await mailsAdded()
  const { words } = await hundredAtOnce((api) => api.redeem(ticket))
  assert.deepEqual(
    words.filter((word) => word !== 'won' && word !== 'ticket_used' && word !== TOLD_TO_WAIT),
    [],
  )
  await mails.next(newEmail, /./)
  assert.equal((await mailsAdded()) - before, 1)
})

async function signedIn() {
  const credentials = await here.newAccount()
  const { accessToken } = expect(200, await here.login(credentials))
  return { password: credentials.password, token: accessToken }
}

async function mailsAdded(): Promise<number> {
  const entries = await system.redis.xrange(`${system.namespace.queuePrefix}:mail:events`, '-', '+')
  return entries.filter(([, fields]) => fields[fields.indexOf('event') + 1] === 'added').length
}
