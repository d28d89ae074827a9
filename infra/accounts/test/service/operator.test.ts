// `pnpm accounts` as a client of the API for operators, at the ops port of a gateway.
import assert from 'node:assert/strict'
import { accounts as run } from '@spillway/infra/accounts/command'
import { createNamespace } from '@spillway/infra/harness/namespace'
import { openSpillway } from '@spillway/infra/harness/spillway'
import { connectDatabase } from '@spillway/prisma'
import { afterAll, test } from 'vitest'

const OPS_PASSWORD = 'a password for operators'
const namespace = await createNamespace()
const spillway = openSpillway({ ...namespace, env: { OPS_PASSWORD } })
const database = connectDatabase({ url: namespace.databaseUrl, poolSize: 1 })
afterAll(async () => {
  await database.$disconnect()
  assert.deepEqual(await spillway.close(), [])
  await namespace.close()
})
const { opsUrl } = await spillway.gateway()
const email = 'ada@example.test'
const passwordHash = `$2b$10$${'a'.repeat(53)}`
const { id } = await database.user.create({ data: { id: crypto.randomUUID(), email, passwordHash } })

/** What a command says. Rejects with a UserError. */
async function accounts(args: string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const said: string[] = []
  const output = { log: (text: string) => void said.push(text), error: () => undefined }
  assert.equal(await run(args, { OPS_URL: opsUrl, OPS_PASSWORD, ...env }, output), 0)
  return said.join('\n')
}

const because = ['--reason', 'asked by telephone']

test('an account is shown by its address and its id, without its hash', async () => {
  for (const account of [email.toUpperCase(), id]) {
    const shown = await accounts(['show', account])
    assert.match(shown, /^id +[0-9a-f-]{36}\nemail +ada@example\.test\n[\s\S]*^hash +bcrypt, cost 10$/m)
    assert.ok(!shown.includes(passwordHash))
  }
})

test('each command on an account or a network does what its call does, and the audit has the reason', async () => {
  const until = ['--until', '2h']
  const commands: [args: string[], said: RegExp][] = [
    [['disable', email], /^changed +1$/],
    [['disable', id], /^changed +0$/],
    [['enable', email], /^changed +1$/],
    [['forget-failures', email], /^changed +0$/],
    [['end-sessions', email], /^changed +0$/],
    [['change-email', email, 'lovelace@example.test', '--confirmed'], /^changed +1$/],
    [['export-person', id], /"email": "lovelace@example\.test"/],
    [['block', '192.0.2.0/24', ...until], /^changed +1$/],
    [['block', '192.0.2.0/24', '--until', '2999-01-31T18:00'], /^changed +1$/],
    [['blocks'], /"network": "192\.0\.2\.0\/24"/],
    [['unblock', '192.0.2.0/24'], /^changed +1$/],
    [['delete', id], /^changed +1$/],
  ]
  for (const [args, said] of commands)
    assert.match(await accounts([...args, ...(args[0] === 'blocks' ? [] : because)]), said, args.join(' '))
  assert.equal(await database.user.count(), 0)
})

test.each([
  [['show', 'nobody@example.test'], {}, /^There is no such account\.$/],
  [['show', email], { OPS_PASSWORD: 'wrong' }, /^An operator must log in\.$/],
  [['show', email], { OPS_URL: 'http://127.0.0.1:1' }, /^Nothing answers at http:\/\/127\.0\.0\.1:1: OPS_URL is/],
  [['block', '0.0.0.0/0', '--until', '1h', ...because], {}, /^The request is not valid: network must be an IP address/],
  [['disable', email], {}, /^--reason says why/],
  [['block', '192.0.2.1', ...because], {}, /^--until takes a time/],
  [['block', '192.0.2.1', '--until', 'tomorrow', ...because], {}, /^--until takes a time/],
  [['show'], {}, /^See "pnpm accounts --help" for what follows show\.$/],
  [['change-email', email, ...because], {}, /^See "pnpm accounts --help"/],
] as const)('%j is refused by one sentence', async (args, env, sentence) => {
  await assert.rejects(accounts([...args], env), (error: Error) => {
    assert.equal(error.name, 'UserError')
    assert.match(error.message, sentence)
    return true
  })
})
