// `pnpm accounts` as a process: stopped in the middle, and with a process beside it that hashes.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { startProcess } from '@spillway/infra/processes/node-process'
import { repositoryDir } from '@spillway/infra/processes/repository'
import { until } from '@spillway/infra/processes/until'
import { test } from 'vitest'
import { bcrypt, cheapHasher, ndjson, newEmail, openAccounts, rejectedOf } from '../accounts.ts'

const { accounts, database, databaseUrl, fileOf, stored } = await openAccounts()

const started = (args: string[]) =>
  startProcess({
    entry: 'infra/accounts/src/main.ts',
    nodeArgs: ['--import', 'tsx'],
    args,
    env: { DATABASE_URL: databaseUrl },
  })

test('the URL of the database may come from a file, whose absence is told in a sentence', async () => {
  const env = { DATABASE_URL: '', DATABASE_URL_FILE: await fileOf('url', `${databaseUrl}\n`) }
  assert.equal((await accounts(['hashes'], env)).code, 0)
  const { code, stderr } = await accounts(['hashes'], { ...env, DATABASE_URL_FILE: '/nowhere/hush' })
  assert.deepEqual([code, stderr], [1, 'DATABASE_URL_FILE names a file that cannot be read (ENOENT)'])
})

test.each(['export -', 'hashes', 'formats', '--help'])(
  '%s: ends quietly once nobody reads its output',
  async (command) => {
    await database.user.create({ data: { id: randomUUID(), email: newEmail(), passwordHash: bcrypt } })
    const args = ['--import', 'tsx', 'infra/accounts/src/main.ts', ...command.split(' ')]
    const env = { ...process.env, DATABASE_URL: databaseUrl }
    const child = spawn(process.execPath, args, { cwd: repositoryDir, env })
    child.stdout.destroy()
    const said = await text(child.stderr)
    assert.deepEqual([said, child.exitCode ?? (await once(child, 'exit'))[0]], ['', 141])
  },
)

test('an import that is stopped says so, and goes on when it is repeated', async () => {
  const file = await fileOf(
    'many.ndjson',
    ndjson(Array.from({ length: 30_000 }, () => ({ email: newEmail(), passwordHash: bcrypt }))),
  )
  const before = await database.user.count()
  const running = started(['import', file])
  await until(async () => (await database.user.count()) > before)
  assert.deepEqual(await running.stop('SIGINT'), { code: 130, signal: null })
  const created = (await database.user.count()) - before
  assert.ok(created < 30_000)
  assert.match(running.output(), new RegExp(`Created ${created} accounts[\\s\\S]*Stopped`))
  assert.match((await accounts(['import', file])).stdout, new RegExp(`left ${created} that existed`))
  assert.equal((await database.user.count()) - before, 30_000)
})

test('a salt is kept up to its longest, and a longer one rejected: no account is stored that could not log in', async () => {
  const hasher = await cheapHasher()
  const [email, digest] = [
    newEmail(),
    createHash('md5')
      .update(`${'s'.repeat(128)}x`)
      .digest('hex'),
  ]
  const records = [128, 129].map((length, n) => ({
    email: n === 0 ? email : newEmail(),
    passwordHash: digest,
    salt: 's'.repeat(length),
  }))
  const file = await fileOf('salts.ndjson', ndjson(records))
  await accounts(['import', '--weak', 'md5', file])
  assert.deepEqual(await rejectedOf(file), [{ line: 2, reason: 'has a salt that is too long' }])
  const { passwordHash } = (await stored(email)) ?? assert.fail('no account')
  assert.ok(!passwordHash.includes(digest))
  assert.equal(await hasher.verify('x', passwordHash), true)
})
