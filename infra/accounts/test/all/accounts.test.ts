// `pnpm accounts` as a process: stopped in the middle, with a process beside it that hashes, and
// refusing.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { startProcess } from '@spillway/infra/processes/node-process'
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

test('a mistake is one sentence without a stack, and exit code 1', async () => {
  const running = started(['import', 'users.csv', '--preset', 'other'])
  assert.deepEqual(await running.exited, { code: 1, signal: null })
  assert.match(running.output(), /^--preset takes one of [^\n]*$/)
})

test('an import that is stopped says where to go on', async () => {
  const file = await fileOf(
    'many.ndjson',
    ndjson(Array.from({ length: 30_000 }, () => ({ email: newEmail(), passwordHash: bcrypt }))),
  )
  const before = await database.user.count()
  const running = started(['import', file])
  await until(async () => (await database.user.count()) > before)
  assert.deepEqual(await running.stop('SIGINT'), { code: 130, signal: null })
  const [, line = ''] = /--from-line (\d+)/.exec(running.output()) ?? []
  assert.equal((await database.user.count()) - before, Number(line) - 1)
  assert.match((await accounts(['import', '--from-line', line, file])).stdout, /left 0 that existed/)
  assert.equal((await database.user.count()) - before, 30_000)
})

// By md5sum, sha1sum and sha256sum.
test.each([
  ['md5', [], '', '3cb4e732631f47e6eb961f34554b7cde'],
  ['sha1', [], 'salt~', 'aae4362fbd463e7db4ab21b73a0ca6d3c472e1ac'],
  ['sha256', ['--salt', 'after'], 'salt~', 'd3b5c7db30196d4bed377bb2618d147446c41488b5b0bb0d640ccd17aa101dbe'],
] as const)(
  'digests of %s are hashed before they are stored, and their passwords log in',
  async (name, args, salt, digest) => {
    const hasher = await cheapHasher()
    const password = 'correct horse'
    const email = newEmail()
    const file = await fileOf(`${name}.ndjson`, ndjson([{ email, passwordHash: digest, salt }]))
    const { stdout, stderr } = await accounts(['import', '--weak', name, ...args, file])
    assert.match(stdout, /Created 1 accounts[\s\S]* 1 {2}\w+, weak, inside argon2id/, stderr)
    const { passwordHash } = (await stored(email)) ?? assert.fail('no account')
    assert.ok(!passwordHash.includes(digest))
    assert.equal(await hasher.verify(password, passwordHash), true, name)
    assert.equal(await hasher.verify('wrong', passwordHash), false, name)
    assert.equal(hasher.isDue(passwordHash), true)
  },
)

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
  assert.equal(await hasher.verify('x', (await stored(email))?.passwordHash ?? ''), true)
})
