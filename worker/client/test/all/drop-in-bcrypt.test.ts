// Every case is run through the package `bcrypt` and through @spillway/client/bcrypt.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import * as bcrypt from '@spillway/client/bcrypt'
import { sharePasswords } from '@spillway/client/shared-passwords'
import original from 'bcrypt'
import { afterAll, test } from 'vitest'
import { type Case, called, compareAll, mistakes, passwordsBeside, signatures } from '../drop-in.ts'
import { rejectsWith } from '../passwords.ts'

const run = promisify(execFile)
const passwords = passwordsBeside()
afterAll(() => passwords.close())
sharePasswords(passwords)
const { close: _, ...ours } = bcrypt

const SALT = 'CCCCCCCCCCCCCCCCCCCCC.'
const DIGEST = 'E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'
const salt = `$2b$04$${SALT}`
/** Of "U*U", by Openwall. */
const known = `$2a$05$${SALT}${DIGEST}`

const data: [name: string, password: string | Buffer][] = [
  ['nothing', ''],
  ['a word', 'correct horse'],
  ['72 bytes', 'x'.repeat(72)],
  ['73 bytes', 'x'.repeat(73)],
  ['a character across the 72nd byte', `x${'ä'.repeat(40)}`],
  ['an emoji', '🔑🔑'],
  ['a lone surrogate', 'x\ud800y'],
  ['a NUL', 'a\0b'],
  ['a NUL at the end', 'U*U\0'],
  ['a digest', Buffer.from('00ff9f92d30180c0ffee', 'hex')],
  ['254 bytes', 'ab'.repeat(127)],
  ['255 bytes', 'abc'.repeat(85)],
  ['300 bytes', 'abcde'.repeat(60)],
]

const hashes: Case[] = data.flatMap(([name, password]) =>
  ['2a', '2b', '2'].map((version): Case => {
    const given = salt.replace('2b', version)
    return [`hash: ${name}, with a salt of ${version}`, (bcrypt) => bcrypt.hash(password, given)]
  }),
)

/** The hash is the original's. */
const compares: Case[] = data.flatMap(([name, password]) =>
  ['2a', '2b', '2'].flatMap((version): Case[] => {
    const stored = original.hashSync(password, salt.replace('2b', version))
    const longer = Buffer.concat([Buffer.from(password), Buffer.from('!')])
    return [
      [`compare: ${name}, ${version}`, (bcrypt) => bcrypt.compare(password, stored)],
      [`compare: ${name} and one more byte, ${version}`, (bcrypt) => bcrypt.compare(longer, stored)],
    ]
  }),
)

const malformed: [name: string, text: string][] = [
  ['nothing', ''],
  ['a word', 'password'],
  ['2y', known.replace('2a', '2y')],
  ['2x', known.replace('2a', '2x')],
  ['a cost of one digit', known.replace('05', '5')],
  ['a cost with a sign', known.replace('05', '+5')],
  ['a cost that is none', known.replace('05', 'xx')],
  ['cost 03', known.replace('05', '03')],
  ['cost 32', known.replace('05', '32')],
  ['another cost', known.replace('05', '04')],
  ['no digest', `$2a$05$${SALT}`],
  ['a digest that is too short', known.slice(0, -1)],
  ['bits in the salt that mean nothing', known.replace(SALT, SALT.replace('.', '/'))],
  ['bits in the digest that mean nothing', known.replace(/W$/, 'X')],
  ['a NUL and something after it', `${known}\0junk`],
  ['UTF-8', '$2a$05$ääääääääääääääääääääää'],
  ['argon2', '$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHQ$c29tZXNhbHQ'],
]

const malformedHashes: Case[] = malformed.map(([name, text]) => [
  `compare: a hash that is ${name}`,
  (bcrypt) => bcrypt.compare('U*U', text),
])
/** Of those that are not whole in base64, the original reads memory of others. */
const malformedSalts: Case[] = malformed
  .filter(([name]) => name !== 'UTF-8')
  .map(([name, text]) => [`hash: a salt that is ${name}`, (bcrypt) => bcrypt.hash('U*U', text)])
const rounds: Case[] = malformed.map(([name, text]) => [`getRounds: ${name}`, (bcrypt) => bcrypt.getRounds(text)])

/** Random bytes are left out of what is compared. */
const head = (text: string) => [text.slice(0, 7), text.length]

const counts = [0, 1, 3, 4, 5.9, 10, 31, 32, 255, 256, 260, -1, -4, 1e10, Number.NaN, Number.POSITIVE_INFINITY]
const numbers = [undefined, null, ...counts, '10', '']
const salts: Case[] = [
  ...numbers.flatMap((value): Case[] => [
    [`genSalt: ${JSON.stringify(value)} rounds`, async (bcrypt) => head(await bcrypt.genSalt(value))],
    [`genSaltSync: ${JSON.stringify(value)} rounds`, (bcrypt) => head(bcrypt.genSaltSync(value))],
  ]),
  ...['a', 'b', 'y', '', null, undefined, 1].flatMap((minor): Case[] => [
    [`genSalt: minor ${JSON.stringify(minor)}`, async (bcrypt) => head(await bcrypt.genSalt(4, minor))],
    [`genSaltSync: minor ${JSON.stringify(minor)}`, (bcrypt) => head(bcrypt.genSaltSync(4, minor))],
  ]),
  ['genSalt: neither rounds nor minor', async (bcrypt) => head(await bcrypt.genSalt())],
  ...[1, 3, 4, 5, 4.9, 256].flatMap((value): Case[] => [
    [`hash: ${value} rounds`, async (bcrypt) => head(await bcrypt.hash('x', value))],
    [`hashSync: ${value} rounds`, (bcrypt) => head(bcrypt.hashSync('x', value))],
  ]),
]

/** Every argument that is no text and no function. */
const everyArgument: Case[] = [
  ...mistakes,
  ['an Uint8Array', new Uint8Array(2)] as const,
  ['bytes', Buffer.from(salt)] as const,
]
  .filter(([, value]) => typeof value !== 'function' && !(typeof value === 'number' && value > 4) && value !== -1)
  .flatMap(([what, value]): Case[] => [
    [`hash: data is ${what}`, (bcrypt) => bcrypt.hash(value, salt)],
    [`hash with a callback: data is ${what}`, (bcrypt) => called((done) => bcrypt.hash(value, salt, done))],
    [`hashSync: data is ${what}`, (bcrypt) => bcrypt.hashSync(value, salt)],
    [`hash: salt is ${what}`, async (bcrypt) => head(await bcrypt.hash('x', value === 0 ? 4 : value))],
    [`hash with a callback: salt is ${what}`, (bcrypt) => called((done) => bcrypt.hash('x', String(value), done))],
    [`hashSync: salt is ${what}`, (bcrypt) => head(bcrypt.hashSync('x', value === 0 ? 4 : value))],
    [`compare: data is ${what}`, (bcrypt) => bcrypt.compare(value, known)],
    [`compare: hash is ${what}`, (bcrypt) => bcrypt.compare('x', value)],
    [`compare with a callback: hash is ${what}`, (bcrypt) => called((done) => bcrypt.compare('x', value, done))],
    [`compareSync: data is ${what}`, (bcrypt) => bcrypt.compareSync(value, known)],
    [`compareSync: hash is ${what}`, (bcrypt) => bcrypt.compareSync('x', value)],
    [`genSalt: rounds are ${what}`, async (bcrypt) => head(await bcrypt.genSalt(value))],
    [`genSalt: minor is ${what}`, async (bcrypt) => head(await bcrypt.genSalt(4, value))],
    [`getRounds: of ${what}`, (bcrypt) => bcrypt.getRounds(value)],
  ])

const withCallbacks: Case[] = [
  ['hash', (bcrypt) => called((done) => bcrypt.hash('U*U', salt, done))],
  ['hash, wrong salt', (bcrypt) => called((done) => bcrypt.hash('U*U', 'no salt', done))],
  ['hash, the callback as salt', (bcrypt) => called((done) => bcrypt.hash('U*U', done))],
  ['compare', (bcrypt) => called((done) => bcrypt.compare('U*U', known, done))],
  ['compare, another password', (bcrypt) => called((done) => bcrypt.compare('U*V', known, done))],
  ['compare, no hash', (bcrypt) => called((done) => bcrypt.compare('U*U', 'no hash', done))],
  ['compare, the callback as hash', (bcrypt) => called((done) => bcrypt.compare('U*U', done))],
  ['genSalt, wrong rounds', (bcrypt) => called((done) => bcrypt.genSalt('10', done))],
]
const callbacks = withCallbacks.map(([name, call]): Case => [`with a callback: ${name}`, call])

const noCallbacks: Case[] = [true, 'done', {}, 1].flatMap((callback): Case[] => [
  [`hash: a callback that is ${typeof callback}`, (bcrypt) => bcrypt.hash('x', salt, callback)],
  [`compare: a callback that is ${typeof callback}`, (bcrypt) => bcrypt.compare('x', known, callback)],
])

const sync: Case[] = data.flatMap(([name, password]): Case[] => [
  [`hashSync: ${name}`, (bcrypt) => bcrypt.hashSync(password, salt)],
  [`compareSync: ${name}`, (bcrypt) => bcrypt.compareSync(password, original.hashSync(password, salt))],
])

const all = [
  hashes,
  compares,
  malformedHashes,
  malformedSalts,
  rounds,
  salts,
  everyArgument,
  callbacks,
  noCallbacks,
  sync,
]
compareAll(all.flat(), original, ours)

test('the names and the lengths of the functions are those of the package', () =>
  assert.deepEqual(signatures(ours), signatures(original)))

test('what genSalt makes is what hash uses, with a callback too', async () => {
  const made = await new Promise<string>((resolve) => ours.genSalt(5, 'a', (_, made) => resolve(made)))
  assert.match(made, /^\$2a\$05\$[./A-Za-z0-9]{22}$/)
  const hash = await ours.hash('correct horse', made)
  assert.ok(hash.startsWith(made))
  assert.equal(await original.compare('correct horse', hash), true)
})

test('a number of rounds gives another salt each time, and what is made is the original’s', async () => {
  const [one, other] = await Promise.all([ours.hash('correct horse', 4), ours.hash('correct horse', 4)])
  assert.notEqual(one, other)
  for (const hash of [one, other, ours.hashSync('correct horse', 4)]) {
    assert.equal(original.compareSync('correct horse', hash), true)
    assert.equal(original.compareSync('correct hors', hash), false)
  }
})

test('more rounds than workers take are refused by their code', async () => {
  await rejectsWith('unsupported_hash', ours.hash('x', 18))
  // 31 rounds, as the package reads them: hours.
  await rejectsWith('unsupported_hash', ours.hash('x', -1))
  await rejectsWith('unsupported_hash', ours.compare('x', known.replace('05', '18')))
})

test('functions that return a hash warn once', async () => {
  const script = `
    const bcrypt = await import('@spillway/client/bcrypt')
    bcrypt.compareSync('x', bcrypt.hashSync('x', bcrypt.genSaltSync(4)))
    bcrypt.getRounds(bcrypt.hashSync('x', 4))`
  const { stderr } = await run(process.execPath, ['--input-type=module', '-e', script], { cwd: import.meta.dirname })
  assert.equal(stderr.match(/SPILLWAY_SYNC/g)?.length, 1, stderr)
})

test('until its first call no module loads hashing code or the queue', async () => {
  const script = `
    await import('@spillway/client')
    const bcrypt = await import('@spillway/client/bcrypt')
    const argon2 = await import('@spillway/client/argon2')
    bcrypt.genSaltSync(4)
    argon2.needsRehash('$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHQ$c29tZXNhbHQ')
    const { createRequire } = await import('node:module')
    const files = [...Object.keys(createRequire('file:///').cache), ...process.report.getReport().sharedObjects]
    console.log(files.filter((file) => /\\/(argon2|bcrypt|bullmq|ioredis)\\/|\\.node$/.test(file)))`
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script], { cwd: import.meta.dirname })
  assert.equal(stdout.trim(), '[]')
})
