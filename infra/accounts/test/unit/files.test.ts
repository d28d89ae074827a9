// Files as other systems export them: every row is an account or refused with its number, and none
// is lost or let in by mistake.
import assert from 'node:assert/strict'
import { pbkdf2Sync, scryptSync } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { dateOf } from '@spillway/infra/accounts/fields'
import { parseOptions } from '@spillway/infra/accounts/options'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { firebaseProject } from '@spillway/worker/hashing/formats/settings'
import { afterAll, test } from 'vitest'
import { cheapHasher, imported as importedBy } from '../accounts.ts'

const dir = await scratchDir({ onTestFinished: afterAll })
const firebase = firebaseProject({
  firebaseSignerKey: 'YE0dO4bwD4JnJafh6lZZfkp1MtKzuKAXQcDCJNJNyeCHairWHKENOkbh3dzwaCdizzOspwr/FITUVlnOAwPKyw==',
  firebaseSaltSeparator: 'Bw==',
})
const peppers = [{ name: 'flask', secret: Buffer.from('salt of the site') }]
const hasher = await cheapHasher({ firebase, peppers })
const bcrypt = '$2b$10$U4C0ZY8OG8y41F9LusfKyu3HRMBL0rCZcKBVsXhgr.n8Ou6FPhzO2'

const imported = (file: string, ...options: string[]) => importedBy(hasher, file, options)

async function fileOf(name: string, content: string | Buffer): Promise<string> {
  const file = join(dir, name)
  await writeFile(file, content)
  return file
}

const given = (name: string) => fileURLToPath(new URL(`../data/${name}`, import.meta.url))
const rows = (count: number) => Array.from({ length: count }, (_, n) => `user${n}@example.test,"${bcrypt}",note ${n}`)
const csvOf = (lines: readonly string[]) => ['email,passwordHash,note', ...lines, ''].join('\n')

test('a stray quote ends the reading, with the line where its row begins', async () => {
  for (const stray of ['"open', '"a"b', 'say "hi']) {
    const lines = rows(3_000)
    lines[1_500] = `broken@example.test,${bcrypt},${stray}`
    const { failure, accounts, rejected } = await imported(await fileOf('quote.csv', csvOf(lines)))
    assert.match(failure?.message ?? '', /^The row that begins in line 1502 has a quote in a wrong place/)
    assert.ok(accounts.length <= 1_500)
    assert.equal(rejected, 0)
  }
})

test('quoted lines, empty lines, rows of another width and rows behind them keep their numbers, also where the file is packed', async () => {
  const lines = [`"two@example.test",${bcrypt},"one\ntwo\n\nfour"`, '', `narrow@example.test,${bcrypt}`, ...rows(3)]
  const packed = gzipSync(csvOf(lines).replaceAll('\n', '\r\n'))
  const { read, rejectedLines, emails } = await imported(await fileOf('lines.csv.gz', packed))
  assert.equal(read, 5)
  assert.deepEqual(rejectedLines, [{ line: 7, reason: 'has another number of columns than the header line' }])
  assert.equal(emails.length, 4)
})

test('semicolons, tabs, names in any case and byte order marks', async () => {
  assert.deepEqual((await imported(given('semicolon.csv'))).accounts[0]?.createdAt, new Date('2024-01-15T10:30:00Z'))
  const forExcel = await fileOf(
    'excel.csv',
    `\ufeffsep=;\r\nemail;passwordHash;"a,b,c"\r\nsep@example.test;${bcrypt};x\r\nnarrow@example.test\r\n`,
  )
  const { emails, rejectedLines } = await imported(forExcel)
  assert.deepEqual(emails, ['sep@example.test'])
  assert.deepEqual(
    rejectedLines.map(({ line }) => line),
    [4],
  )
  assert.deepEqual((await imported(given('bom.ndjson'))).emails, ['bom1@example.test', 'bom2@example.test'])
  const tabs = `\ufeffEMAIL\tPasswordHASH\na@example.test\t${bcrypt}\n`
  assert.deepEqual((await imported(await fileOf('tabs.tsv', tabs))).emails, ['a@example.test'])
  const dotted = `user.email,user.hash\nb@example.test,${bcrypt}\n`
  const map = ['--map', 'email=user.email,passwordHash=user.hash']
  assert.deepEqual((await imported(await fileOf('dotted.csv', dotted), ...map)).emails, ['b@example.test'])
  const nested = `{"User": {"Email": "c@example.test", "hash": "${bcrypt}"}}\n`
  assert.deepEqual((await imported(await fileOf('nested.ndjson', nested), ...map)).emails, ['c@example.test'])
})

test('a file that is not what it says is refused in one sentence', async () => {
  const good = csvOf(rows(2_500))
  const latin1 = Buffer.from(good.replace('note 2000', 'Z\u00fcrich'), 'latin1')
  const sentences: [string, Buffer, RegExp][] = [
    ['utf16.csv', Buffer.from(`\ufeff${good}`, 'utf16le'), /utf16\.csv is not UTF-8: convert it by "iconv -f UTF-16/],
    ['latin1.csv', latin1, /latin1\.csv is not UTF-8 after line \d+: if it is Latin-1/],
    ['none.csv.gz', Buffer.from(good), /none\.csv\.gz is not a gzip file/],
    [
      'cut.csv.gz',
      gzipSync(good).subarray(0, -200),
      /cut\.csv\.gz is not a gzip file, or is damaged or cut off after line \d+/,
    ],
  ]
  for (const [name, bytes, sentence] of sentences) {
    const { failure, accounts, line } = await imported(await fileOf(name, bytes))
    assert.match(failure?.message ?? '', sentence)
    assert.ok(!accounts.some(({ email }) => email.includes('\ufffd')))
    assert.equal(line, accounts.length === 0 ? 0 : accounts.length + 1)
  }
  assert.match((await imported(join(dir, 'nowhere.csv'))).failure?.message ?? '', /cannot be read/)
  assert.match((await imported('users.xml')).failure?.message ?? '', /must end with/)
})

const pairsOf = (values: Record<string, string[]>) =>
  Object.entries(values).flatMap(([name, all]) => all.map((value) => [name, value] as const))

test('whoever could not log in stays out, by what the export says, and is counted', async () => {
  const future = '2124-01-15 10:30:00+00'
  const [yes, no] = [
    ['true', 'TRUE', 't', '1'],
    ['false', 'f', '0'],
  ]
  const out = { disabled: yes, blocked: yes, is_banned: yes, Locked: yes, is_active: no, enabled: no }
  const since = { banned_until: [future], deleted_at: ['2020-01-01 00:00:00+00', 'some day'] }
  for (const [name, value] of pairsOf({ ...out, ...since })) {
    const csv = `email,passwordHash,${name}\na@example.test,${bcrypt},${value}\n`
    const { rejectedLines } = await imported(await fileOf('out.csv', csv))
    assert.deepEqual(rejectedLines, [{ line: 2, reason: `is disabled (${name.toLowerCase()})` }], `${name}=${value}`)
  }
  const comesIn = { disabled: ['false'], blocked: [''], is_active: ['t'], locked: ['no'] }
  const dates = { banned_until: ['2020-01-01 00:00:00+00'], deleted_at: ['\\N', 'NULL', '0001-01-01T00:00:00Z'] }
  for (const [name, value] of pairsOf({ ...comesIn, ...dates })) {
    const csv = `email,passwordHash,${name}\na@example.test,${bcrypt},${value}\n`
    assert.deepEqual((await imported(await fileOf('in.csv', csv))).emails, ['a@example.test'], `${name}=${value}`)
  }
})

test('dates are read in the forms that exports have', () => {
  const date = new Date('2024-01-15T10:30:00Z')
  for (const text of [
    ...['2024-01-15T10:30:00Z', '2024-01-15 10:30:00', '2024-01-15 10:30:00.000000+00', '2024-01-15 11:30:00+0100'],
    ...['2024-01-15 10:30:00 UTC', '1705314600', '1705314600000', '2024-01-15T12:30:00+02:00'],
  ])
    assert.deepEqual(dateOf(text), date, text)
  for (const text of [undefined, '0001-01-01T00:00:00Z', '0000-00-00 00:00:00', '0'])
    assert.equal(dateOf(text), null, text)
  for (const text of ['yesterday', '2024-13-45 10:30:00']) assert.equal(dateOf(text), undefined, text)
})

test("MongoDB's dates and ids are read", async () => {
  const row = { _id: { $oid: '60425dc43519d90068f82973' }, email: 'm@example.test', passwordHash: bcrypt }
  const created = { createdAt: { $date: { $numberLong: '1705314600000' } } }
  const { accounts } = await imported(await fileOf('mongo.ndjson', `${JSON.stringify({ ...row, ...created })}\n`))
  assert.deepEqual(accounts[0]?.createdAt, new Date('2024-01-15T10:30:00Z'))
})

test("Keycloak's realm is read, its passwords match, and disabled users stay out", async () => {
  const realm = await imported(given('keycloak-realm.json'), '--preset', 'keycloak')
  const { emails, hashes, rejectedLines, accounts } = realm
  assert.deepEqual(emails, ['kc1@example.test'])
  assert.deepEqual(rejectedLines, [{ line: 2, reason: 'is disabled (enabled)' }])
  assert.equal(accounts[0]?.id, 'f27826f7-6ec1-4283-822f-10e0c51a9089')
  assert.ok(accounts[0]?.emailConfirmedAt)
  assert.match(hashes[0] ?? '', /^\$pbkdf2-sha256\$i=27500,l=64\$/)
})

test('Clerk, Supabase and Firebase as they export', async () => {
  const clerk = await imported(given('clerk.csv'), '--preset', 'clerk')
  assert.deepEqual(clerk.emails, ['jane.clerk@example.test', 'john.clerk@example.test'])
  assert.deepEqual(
    clerk.accounts.map(({ emailConfirmedAt, oldId }) => [emailConfirmedAt !== null, oldId?.slice(0, 5)]),
    [
      [true, 'user_'],
      [false, 'user_'],
    ],
  )
  assert.deepEqual(clerk.rejectedLines, [{ line: 4, reason: 'has no password hash' }])
  const supabase = await imported(given('supabase.csv'), '--preset', 'supabase')
  assert.deepEqual(supabase.emails, ['jane.sb@example.test'])
  assert.deepEqual(supabase.rejectedLines, [
    { line: 3, reason: 'is disabled (banned_until)' },
    { line: 4, reason: 'is disabled (deleted_at)' },
  ])
  const ofFirebase = await imported(given('firebase.csv'), '--preset', 'firebase')
  assert.deepEqual(ofFirebase.emails, ['one@example.test'])
  assert.deepEqual(ofFirebase.accounts[0]?.createdAt, new Date(1_704_067_200_000))
  assert.deepEqual(ofFirebase.rejectedLines, [{ line: 2, reason: 'has no password hash' }])
  assert.equal(await hasher.verify('8x4WjoDbSxJZdR', ofFirebase.hashes[0] ?? ''), true)
})

test("Auth0's NDJSON and Django's dumpdata as they export", async () => {
  const day = new Date('2021-05-06T00:00:00Z')
  const dates = { created_at: '2021-05-06T00:00:00Z', email_verified: true }
  const ofAuth0 = { _id: { $oid: '60425dc43519d90068f82973' }, email: 'a@example.test', passwordHash: bcrypt, ...dates }
  const fields = { email: 'd@example.test', password: `bcrypt$${bcrypt}`, date_joined: '2021-05-06T00:00:00Z' }
  const ofDjango = { model: 'auth.user', pk: 1, fields: { ...fields, username: 'ada' } }
  const auth0 = await imported(await fileOf('auth0.jsonl', JSON.stringify(ofAuth0)), '--preset', 'auth0')
  const django = await imported(await fileOf('django.jsonl', JSON.stringify(ofDjango)), '--preset', 'django')
  const datesOf = ({ accounts: [account] }: typeof auth0) => [account?.createdAt, account?.emailConfirmedAt]
  assert.deepEqual([auth0.emails, django.emails], [['a@example.test'], ['d@example.test']])
  assert.deepEqual(
    [datesOf(auth0), datesOf(django)],
    [
      [day, day],
      [day, null],
    ],
  )
  assert.deepEqual(django.hashes, [fields.password])
})

test('WordPress and Better Auth', async () => {
  const phpass = '$P$BsaltsalttEXY.U4uN2zQkn0E7kMTw0'
  const wp = `ID,user_login,user_pass,user_email,user_registered\n7,ada,${phpass},ada@example.test,2019-03-04 05:06:07\n`
  const { accounts, hashes } = await imported(await fileOf('wp_users.csv', wp), '--preset', 'wordpress')
  assert.deepEqual([accounts[0]?.oldId, hashes], ['7', [phpass]])
  assert.deepEqual(accounts[0]?.createdAt, new Date('2019-03-04T05:06:07Z'))
  const row = {
    id: 'k3jH4',
    email: 'b@example.test',
    emailVerified: 't',
    createdAt: '2024-01-15 10:30:00',
    banned: 'f',
  }
  const file = await fileOf('ba.ndjson', `${JSON.stringify({ ...row, password: bcrypt })}\n`)
  const betterAuth = await imported(file, '--preset', 'better-auth')
  assert.deepEqual(betterAuth.accounts[0]?.emailConfirmedAt, new Date('2024-01-15T10:30:00Z'))
})

test('a salt in a column of its own, and digests that do not say how they were made', async () => {
  const salted = (name: string, salt: string, hash: string, ...options: string[]) =>
    fileOf(`${name}.csv`, `email,salt,passwordHash\na@example.test,${salt},${hash}\n`).then((file) =>
      imported(file, ...options),
    )
  const symfony = 'BFQzNeMmSjIxN9L5J91gLBeFiGEB5NrISTxyEhz1efthENjmftjOqorM/8Y2f2Y5Qg8A0CVW4Doo4OMh50KMyA=='
  const one = await salted('symfony', 'saltsalt', symfony, '--hash', 'symfony')
  assert.equal(await hasher.verify('correct horse', one.hashes[0] ?? ''), true)
  // By OpenSSL: PBKDF2 and scrypt of "correct horse" with the salt "saltsalt".
  const key = pbkdf2Sync('correct horse', 'saltsalt', 1_000, 32, 'sha256')
  const hex = Buffer.from('saltsalt').toString('hex')
  const ofPbkdf2 = ['--hash', 'pbkdf2-sha256:1000', '--salt-column', 'salt:hex']
  const pbkdf2 = await salted('pbkdf2', hex, key.toString('hex'), ...ofPbkdf2)
  assert.equal(await hasher.verify('correct horse', pbkdf2.hashes[0] ?? ''), true)
  const scrypt = scryptSync('correct horse', 'saltsalt', 50).toString('base64')
  const ofScrypt = await salted('scrypt', 'saltsalt', scrypt, '--hash', 'scrypt:16384:8:1', '--salt-column', 'salt')
  assert.equal(await hasher.verify('correct horse', ofScrypt.hashes[0] ?? ''), true)
  const bad = await salted('bad', 'zz', key.toString('hex'), ...ofPbkdf2)
  assert.deepEqual(bad.rejectedLines, [{ line: 2, reason: 'has a salt that is not hex' }])
})

test('what was made of the password first is written into the stored hash', async () => {
  const devise = '$2a$05$/VT2Xs2dMd8GJKfrXhjYP.DkTjOVrY12yDN7/6I8ZV0q/1lEohLru'
  const file = await fileOf('vbulletin.csv', `email,passwordHash\na@example.test,${devise}\n`)
  const { hashes } = await imported(file, '--made-of', 'md5')
  assert.equal(hashes[0], `$of$md5$${devise}`)
  assert.equal(await hasher.verify('hashcat', hashes[0] ?? ''), true)
  assert.equal(hasher.isDue(hashes[0] ?? ''), true)
})

test('what cannot be verified is told by its format and why, and nothing of it', async () => {
  const reasons: [string, RegExp][] = [
    ['!', /unusable.*no password, or was locked/],
    ['*', /unusable/],
    ['REDACTED', /redacted/],
    ['{noop}secret', /plain text \(\{noop\}\)/],
    ['{XYZ}c2VjcmV0', /unknown prefix \{XYZ\}/],
    [bcrypt.slice(0, 55), /cut off or damaged: it begins like bcrypt/],
    ['pbkdf2_sha256$1000$salt$AAAA', /cut off or damaged: it begins like PBKDF2/],
    [`$2b$31$${bcrypt.slice(7)}`, /costs too much \(bcrypt\): \d+\.\d s .* 2 s are the bound/],
    [
      `$scrypt$ln=30,r=8,p=1$c2FsdHNhbHQ$${'A'.repeat(43)}`,
      /costs too much \(scrypt\): \d+ MiB .* 1024 MiB are the bound/,
    ],
    [
      `$argon2id$v=19$m=16,t=2,p=4$c2FsdHNhbHQ$${'A'.repeat(43)}`,
      /not supported: argon2 with less than 8 KiB for each lane/,
    ],
    [`$argon2id$v=19$m=64,t=2,p=4$c2FsdHNhbHQ$A`, /cut off or damaged: it begins like argon2/],
    ['5f4dcc3b5aa765d61d8327deb882cf99', /--weak md5/],
    ['m0Jl3.Yn8U/2g', /not supported: DES/],
    ['_7C/.m.Lk67Sd/zofBOA', /not supported: DES/],
    ['*17CBA7EE17263B3DE742E4A1D8E8A6EF66A07230', /not supported: MySQL's PASSWORD/],
    ['0x0100388730C6F0265F8C1F167E9BFBC052939251083366CC3017', /not supported: SQL Server's PWDENCRYPT/],
    ['{FSHP1|16|100}a20NYaz1ntMaI8TYO4cw5iVLlr2JtYuM', /unknown prefix \{FSHP1\|16\|100\}/],
    ['something else', /no known format/],
  ]
  for (const [hash, reason] of reasons) {
    const file = await fileOf('refused.ndjson', `${JSON.stringify({ email: 'a@example.test', passwordHash: hash })}\n`)
    const { rejectedLines } = await imported(file)
    assert.match(rejectedLines[0]?.reason ?? '', reason, hash)
    assert.doesNotMatch(rejectedLines[0]?.reason ?? '', /secret|5f4dcc/)
  }
  const padded = await fileOf(
    'padded.ndjson',
    `${JSON.stringify({ email: 'a@example.test', passwordHash: `${bcrypt}   ` })}\n`,
  )
  assert.deepEqual((await imported(padded)).hashes, [bcrypt])
})

test('accounts without a hash come in where they are to begin with a reset mail', async () => {
  const file = await fileOf(
    'without.ndjson',
    '{"email": "a@example.test"}\n{"email": "b@example.test", "passwordHash": null}\n',
  )
  assert.equal((await imported(file)).rejected, 2)
  const { hashes } = await imported(file, '--without-hash', 'reset')
  assert.deepEqual(hashes, ['$none$', '$none$'])
  const exported = await fileOf('exported.ndjson', '{"email": "a@example.test", "passwordHash": "$none$"}\n')
  assert.deepEqual((await imported(exported)).hashes, ['$none$'])
})

test('options that say nothing known are refused by name', () => {
  for (const [args, sentence] of [
    [['more'], /see "pnpm accounts --help"/],
    [['--hash', 'md6'], /--hash takes pbkdf2-sha256:ROUNDS/],
    [['--salt-column', 'salt:rot13'], /--salt-column takes one of text, hex, base64/],
    [['--id', 'old'], /--id takes one of keep, new/],
    [['--preset', 'myspace'], /--preset takes one of auth0, better-auth, clerk/],
    [['--map', 'mail'], /--map takes pairs/],
    [['--weak', 'crc32'], /--weak takes one of/],
  ] as const)
    assert.throws(() => parseOptions(['import', 'x.csv', ...args]), sentence)
})
