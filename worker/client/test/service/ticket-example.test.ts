// The example of a waiting line in README, as it stands there, asked by the client for pages.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { fastify } from 'fastify'
import { type TestContext, test } from 'vitest'
import { createPasswordsWith } from '../../src/application/create-passwords.ts'
import { PasswordsError } from '../../src/application/passwords-error.ts'
import { ask } from '../../src/browser.ts'

const besideProgram = new URL('../../../dist/beside.cjs', import.meta.url)
const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8')
const [, example = assert.fail('README has no example')] =
  /^## A waiting line\n.*?^```js\n(.*?)^```/ms.exec(readme) ?? []

async function startExample(t: TestContext) {
  const app = fastify()
  const policy = { algorithm: 'bcrypt', cost: 4 } as const
  const passwords = createPasswordsWith(besideProgram, { policy, waitMs: 60_000 })
  t.onTestFinished(async () => {
    await app.close()
    await passwords.close()
  })
  app.decorate('passwords', passwords)
  const hashes = new Map([['ada', await passwords.hash('correct horse')]])
  const users = {
    byEmail: async (email: string) => ({ id: email, passwordHash: hashes.get(email) }),
    hashOf: async (id: string) => hashes.get(id) ?? null,
  }
  const openSession = (id: string) => ({ session: id })
  new Function('app', 'users', 'openSession', 'PasswordsError', example)(app, users, openSession, PasswordsError)
  app.get('/fails', () => {
    throw new Error('of the application')
  })
  const baseUrl = await app.listen({ port: 0, host: '127.0.0.1' })
  return {
    ...{ passwords, hashes, baseUrl },
    logIn: (email: string, password: string) =>
      ask({ baseUrl, path: '/login', body: { email, password }, storage: null }),
    async redeemed(ticket: string) {
      const headers = { 'content-type': 'application/json' }
      const init = { method: 'POST', headers, body: JSON.stringify({ ticket }) }
      const response = await fetch(`${baseUrl}/v1/tickets/redeem`, init)
      const { code, session } = Object(await response.json())
      return [response.status, code ?? session]
    },
  }
}

test('a right password opens a session; a wrong one and an unknown user do not', async (t) => {
  const { logIn } = await startExample(t)
  assert.deepEqual(await logIn('ada', 'correct horse'), { session: 'ada' })
  for (const [email, password] of [
    ['ada', 'wrong'],
    ['eve', 'correct horse'],
  ] as const)
    await assert.rejects(logIn(email, password), { code: 'invalid_credentials' })
})

test('a ticket that is not answered is told by its code, and other errors are left to the application', async (t) => {
  const { passwords, hashes, redeemed, baseUrl } = await startExample(t)
  const begin = () => passwords.begin('correct horse', hashes.get('ada') ?? null, { subject: 'ada' })
  const [ticket, old] = [await begin(), await begin()]
  assert.deepEqual(await redeemed(ticket), [200, 'ada'])
  assert.deepEqual(await redeemed(ticket), [410, 'ticket_lost'])
  assert.deepEqual(await redeemed('nonsense'), [400, 'invalid_ticket'])
  hashes.set('ada', await passwords.hash('another'))
  assert.deepEqual(await redeemed(old), [410, 'hash_replaced'])
  assert.equal((await fetch(`${baseUrl}/fails`)).status, 500)
})
