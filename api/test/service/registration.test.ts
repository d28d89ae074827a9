// Many registrations of one address at once, and PostgreSQL's log of them.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { assertProblem, expect, newCredentials, respondAsync } from '../client.ts'
import { shareSystem } from '../system.ts'

const system = await shareSystem()
const [{ api: here }, { api: there }] = await Promise.all([system.gateway(), system.gateway()])

test('twenty registrations of one address at once leave no word of it in the log of PostgreSQL', async (t) => {
  const log = await serverLog()
  if (log === undefined) return t.skip('this PostgreSQL keeps its log on another machine')
  const credentials = newCredentials()
  const tickets = await Promise.all(
    Array.from({ length: 20 }, async (_, n) =>
      expect(202, await (n % 2 ? here : there).register(credentials, respondAsync)),
    ),
  )
  const redemptions = tickets.map(({ ticket }, n) => (n % 2 ? here : there).redeem(ticket))
  const outcomes = (await Promise.all(redemptions)).map(({ status, body }) => (status === 201 ? 'created' : body.code))
  assert.deepEqual([...new Set(outcomes)].sort(), ['created', 'email_taken'])
  assert.equal(await system.database.user.count({ where: { email: credentials.email } }), 1)

  const marker = `marker of ${credentials.password}`
  await assert.rejects(system.database.$queryRawUnsafe(`SELECT '${marker}'::uuid`))
  await until(async () => (await readFile(log, 'utf8')).includes(marker))
  assert.ok(!(await readFile(log, 'utf8')).includes(credentials.email))
})

test('where registration is closed everyone is refused alike, before any work, and those who have an account log in', async () => {
  const { api, opsUrl } = await system.gateway({
    REGISTRATION: 'closed',
    LIMIT_PER_ADDRESS: '100',
    LIMIT_PER_ACCOUNT: '1',
  })
  const mine = await here.newAccount()
  const json = { 'content-type': 'application/json' }
  const bodies = [mine, newCredentials(), { email: 'x', password: '' }].map((body) => JSON.stringify(body))
  const answers = await Promise.all(
    [...bodies, '{', ' '.repeat(20_000)].map(async (body) => {
      const answer = await fetch(`${api.url}/v1/users`, { method: 'POST', headers: json, body })
      const names = [...answer.headers].filter(([name]) => !['date', 'x-request-id'].includes(name))
      const text = (await answer.text()).replace(/"requestId":"[^"]+"/, '')
      return JSON.stringify([answer.status, names, text])
    }),
  )
  assert.equal(new Set(answers).size, 1, answers.join('\n'))
  assert.match(answers[0] ?? '', /^\[403,.*registration_closed/)
  // It is counted for nobody, so it costs nothing: the owner of a tried address logs in.
  expect(200, await api.login(mine))
  const page = await (await fetch(`${opsUrl}/metrics`)).text()
  assert.match(page, /spillway_hold_seconds_count\{endpoint="login",outcome="answered"\} 1/)
  assert.doesNotMatch(page, /spillway_hold_seconds_count\{endpoint="register"[^}]*\} [1-9]/)
})

test('a ticket from before registration was closed makes no account', async () => {
  const closed = await system.gateway({ REGISTRATION: 'closed' })
  const credentials = newCredentials()
  const { ticket } = expect(202, await here.register(credentials, respondAsync))
  assertProblem(await closed.api.redeem(ticket), 403, 'registration_closed')
  assert.equal(await system.database.user.count({ where: { email: credentials.email } }), 0)
})

/** The file that the standard error of PostgreSQL goes to, where it runs on this machine. */
async function serverLog(): Promise<string | undefined> {
  const [server] = await system.database.$queryRaw<{ pid: number; data: string }[]>`
    SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int AS pid, current_setting('data_directory') AS data`
  const log = `/proc/${server?.pid}/fd/2`
  return existsSync(log) && existsSync(server?.data ?? '') ? log : undefined
}
