// `pnpm accounts` on a real database: import, again, export, hashes.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createNamespace } from '@spillway/infra/harness/namespace'
import { firebaseProject } from '@spillway/worker/hashing/formats/settings'
import { test } from 'vitest'
import { bcrypt, cheapHasher, ndjson, newEmail, openAccounts, rejectedOf } from '../accounts.ts'

const { accounts, database, dir, fileOf, stored } = await openAccounts()

const argon2id = `$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$${'A'.repeat(43)}`

/** Firebase's own example. */
const firebaseExample = {
  FIREBASE_SIGNER_KEY: 'jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==',
  passwordHash: 'lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==',
  password: 'user1password',
}

test('ids, dates and hashes are kept, addresses are normalized, and a second time changes nothing', async () => {
  const [id, email] = [randomUUID(), newEmail()]
  const other = newEmail()
  const file = await fileOf(
    'own.ndjson',
    ndjson([
      { id, email: ` ${email.toUpperCase()} `, passwordHash: bcrypt, createdAt: '2020-01-02T03:04:05.678Z' },
      { email: other, passwordHash: argon2id, extra: { deep: 1 } },
    ]),
  )
  const first = await accounts(['import', file])
  assert.equal(first.code, 0, first.stderr)
  assert.match(first.stdout, /Created 2 accounts, left 0 that existed/)
  const { createdAt, ...user } = (await stored(email)) ?? assert.fail('no account')
  assert.deepEqual(
    { id: user.id, passwordHash: user.passwordHash, credentialVersion: user.credentialVersion },
    { id, passwordHash: bcrypt, credentialVersion: 1 },
  )
  assert.equal(createdAt.toISOString(), '2020-01-02T03:04:05.678Z')
  assert.match((await accounts(['import', file])).stdout, /Created 0 accounts, left 2 that existed/)
})

test('a confirmed address stays confirmed, with its date or the date of the account, and no other address is', async () => {
  const createdAt = '2020-01-02T03:04:05.678Z'
  const confirmations = new Map<unknown, string | null>([
    ['2021-02-03T04:05:06.007Z', '2021-02-03T04:05:06.007Z'],
    [true, createdAt],
    ['true', createdAt],
    [false, null],
    ['false', null],
    [null, null],
    [undefined, null],
    ['', null],
  ])
  const records = [...confirmations].map(([emailConfirmedAt, expected]) => {
    const record = { email: newEmail(), passwordHash: bcrypt, createdAt, emailConfirmedAt }
    return { record, expected }
  })
  const wrong = ['yes', '2999-01-01T00:00:00Z'].map((emailConfirmedAt) => ({
    ...{ email: newEmail(), passwordHash: bcrypt },
    emailConfirmedAt,
  }))
  const file = await fileOf('confirmed.ndjson', ndjson([...records.map(({ record }) => record), ...wrong]))
  assert.match((await accounts(['import', file])).stdout, /Created 8 accounts[\s\S]*Rejected 2 lines/)
  for (const { record, expected } of records)
    assert.equal(
      (await stored(record.email))?.emailConfirmedAt?.toISOString() ?? null,
      expected,
      JSON.stringify(record),
    )
  const reason = 'has a confirmation date that is not valid'
  assert.deepEqual(await rejectedOf(file), [
    { line: 9, reason },
    { line: 10, reason },
  ])
})

test('a dry run counts by format and by reason, and writes nothing', async () => {
  const email = newEmail()
  const file = await fileOf('dry.ndjson', `${ndjson([{ email, passwordHash: bcrypt }, { email: 'x' }])}`)
  const { stdout } = await accounts(['import', '--dry-run', file])
  assert.match(stdout, /Nothing was written/)
  assert.match(stdout, /^ +1 {2}bcrypt$/m)
  assert.match(stdout, /^Rejected 1 lines:\n +1 {2}has an e-mail address that is not valid \(first in line 2\)$/m)
  assert.equal(await stored(email), null)
  await assert.rejects(stat(`${file}.rejected.ndjson`), { code: 'ENOENT' })
})

test('an import rejects a hash for which workers have no memory', async () => {
  const passwordHash = `$argon2id$v=19$m=262144,t=3,p=1$c29tZXNhbHQ$${'A'.repeat(43)}`
  const file = await fileOf('dear.ndjson', ndjson([{ email: newEmail(), passwordHash }]))
  const told = async (...args: string[]) => (await accounts(['import', '--dry-run', file, ...args])).stdout
  assert.match(
    await told(),
    /^ +1 {2}has .* costs too much \(argon2\): 256 MiB of memory, where workers have 129 MiB for a hash: they need a worker\.memory of 383Mi \(first in line 1\)$/m,
  )
  assert.doesNotMatch(await told('--worker-memory', '384'), /Rejected/)
})

test('what is wrong with a line is told by its number, and nothing of what it holds; the others are imported', async () => {
  const [email, id] = [newEmail(), randomUUID()]
  const good = { email, passwordHash: bcrypt }
  const file = await fileOf(
    'bad.ndjson',
    [
      JSON.stringify({ ...good, id }),
      '{"email":',
      '[1]',
      '',
      JSON.stringify({ passwordHash: bcrypt }),
      JSON.stringify({ ...good, email: 'secret-address' }),
      JSON.stringify({ ...good, email: newEmail(), id: '17' }),
      JSON.stringify({ ...good, email: newEmail(), createdAt: 'secret-date' }),
      JSON.stringify({ email: newEmail() }),
      JSON.stringify({ email: newEmail(), passwordHash: 'secret-hash' }),
      JSON.stringify({ email: newEmail(), passwordHash: `$2b$18$${'a'.repeat(53)}` }),
      JSON.stringify({ ...good, email: newEmail(), id }),
    ].join('\n'),
  )
  const { stdout, code } = await accounts(['import', file])
  assert.equal(code, 1)
  assert.match(stdout, /Created 1 accounts[\s\S]*Rejected 10 lines/)
  const rejected = await rejectedOf(file)
  assert.deepEqual(
    rejected.map(({ line }) => line).sort((a, b) => a - b),
    [2, 3, 5, 6, 7, 8, 9, 10, 11, 12],
  )
  assert.equal(rejected.find(({ line }) => line === 12)?.reason, 'has an id that belongs to another address')
  assert.doesNotMatch(`${stdout}${await readFile(`${file}.rejected.ndjson`, 'utf8')}`, /secret/)
  assert.equal((await stat(`${file}.rejected.ndjson`)).mode & 0o077, 0)
})

test("Firebase's export is read as it is, and its passwords match by the signer key of the project alone", async () => {
  const [email, second] = [newEmail(), newEmail()]
  const user = (fields: object) => ({
    localId: 'UVBPNKM8DaN2',
    emailVerified: true,
    createdAt: '1486324654000',
    ...fields,
  })
  const hashed = { salt: '42xEC+ixf3L2lw==', passwordHash: firebaseExample.passwordHash }
  const users = [
    user({ email, ...hashed }),
    user({
      ...{ email: second, emailVerified: false },
      ...{ salt: '42xEC-ixf3L2lw==', passwordHash: hashed.passwordHash.replaceAll('/', '_') },
    }),
    user({ email: newEmail(), providerUserInfo: [{ providerId: 'google.com', rawId: '1' }] }),
    user({ phoneNumber: '+15551234567' }),
    user({ email: newEmail(), disabled: true, ...hashed }),
    user({ email: newEmail(), ...hashed, passwordHash: 'AAAA' }),
  ]
  // As firebase-tools writes it: the objects over several lines, between commas.
  const text = users.map((one) => JSON.stringify(one, null, 2)).join(',\n')
  const file = await fileOf('firebase.json', `{"users": [\n${text}]}`)
  const { FIREBASE_SIGNER_KEY } = firebaseExample
  const { code, stdout, stderr } = await accounts(['import', '--preset', 'firebase', file], { FIREBASE_SIGNER_KEY })
  assert.equal(code, 1, stderr)
  assert.match(stdout, /^Read 6 lines in .* Created 2 accounts/)
  assert.deepEqual(await rejectedOf(file), [
    { line: 3, reason: 'has no password hash' },
    { line: 4, reason: 'has no e-mail address' },
    { line: 5, reason: 'is disabled (disabled)' },
    { line: 6, reason: 'has a hash of Firebase that is damaged, or of another project than FIREBASE_SIGNER_KEY' },
  ])
  const hasher = await cheapHasher({
    firebase: firebaseProject({ firebaseSignerKey: FIREBASE_SIGNER_KEY, firebaseSaltSeparator: 'Bw==' }),
  })
  for (const address of [email, second]) {
    const account = await stored(address)
    assert.equal(account?.createdAt.toISOString(), '2017-02-05T19:57:34.000Z')
    assert.deepEqual(account.emailConfirmedAt, address === email ? account.createdAt : null)
    assert.ok(!account.passwordHash.includes(FIREBASE_SIGNER_KEY))
    assert.equal(await hasher.verify(firebaseExample.password, account.passwordHash), true)
  }
  const without = await accounts(['import', '--preset', 'firebase', file])
  assert.equal(without.code, 1)
  assert.match(without.stderr, /FIREBASE_SIGNER_KEY/)
})

test('an array of records is read one at a time, and what comes after a mistake is said to be lost', async () => {
  const record = (email: string) => ({
    model: 'auth.user',
    pk: 1,
    fields: { email, password: bcrypt, is_active: true },
  })
  const [first, second] = [newEmail(), newEmail()]
  const disabled = { ...record(newEmail()), fields: { email: newEmail(), password: bcrypt, is_active: false } }
  const whole = JSON.stringify([record(first), 1, disabled, record(second)])
  const file = await fileOf('dumpdata.json', whole)
  const { stdout } = await accounts(['import', '--preset', 'django', file])
  assert.match(stdout, /Created 2 accounts/)
  assert.deepEqual(await rejectedOf(file), [
    { line: 2, reason: 'is not a JSON object' },
    { line: 3, reason: 'is disabled (is_active)' },
  ])
  for (const broken of [whole.slice(0, -1), `${whole.slice(0, -2)},`, whole.replace(',1,', ',one,')]) {
    const file = await fileOf(`${randomUUID()}.json`, broken)
    await accounts(['import', '--preset', 'django', file])
    const [last] = (await rejectedOf(file)).slice(-1)
    assert.equal(last?.reason, 'is not JSON: the rest of the file was not read', broken)
  }
})

test('what is exported is imported again as it was, and counted by its hashes', async () => {
  const other = await createNamespace()
  try {
    const nil = '00000000-0000-0000-0000-000000000000'
    await database.user.create({ data: { id: nil, email: newEmail(), passwordHash: bcrypt } })
    const count = await database.user.count()
    assert.ok((await database.user.count({ where: { emailConfirmedAt: { not: null } } })) > 0)
    const [disabled = assert.fail('no account')] = await database.user.findMany({ take: 1 })
    await database.user.update({ where: { id: disabled.id }, data: { disabledAt: new Date() } })
    const file = join(dir, 'export.ndjson')
    assert.match((await accounts(['export', file])).stdout, new RegExp(`Exported ${count} accounts`))
    assert.equal((await stat(file)).mode & 0o077, 0)
    const { code, stderr } = await accounts(['export', file])
    assert.deepEqual([code, /cannot be written/.test(stderr)], [1, true])
    // Some of them came from Firebase.
    const { FIREBASE_SIGNER_KEY } = firebaseExample
    const there = { DATABASE_URL: other.databaseUrl, FIREBASE_SIGNER_KEY }
    assert.match((await accounts(['import', file], there)).stdout, new RegExp(`Created ${count} accounts`))
    const again = join(dir, 'again.ndjson')
    await accounts(['export', again], there)
    const text = await readFile(file, 'utf8')
    assert.equal(text.match(/"disabledAt":"/g)?.length, 1)
    assert.equal(await readFile(again, 'utf8'), text)
    assert.match((await accounts(['hashes'])).stdout, /^ +\d+ {2}bcrypt, cost 10\n[\s\S]*argon2id, m=19456,t=2,p=1/)
  } finally {
    await other.close()
  }
})
