// Every case is run through the package `argon2` and through @spillway/client/argon2, and the outcomes are compared.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createArgon2 } from '@spillway/client/drop-in/argon2'
import original from 'argon2'
import { rejectsWith } from './application.ts'
import { type Case, compareAll, passwordsBeside } from './drop-in.ts'

const passwords = passwordsBeside()
after(() => passwords.close())
const ours = createArgon2(() => passwords)

const cost = { memoryCost: 64, timeCost: 2, parallelism: 1 }
const salt = Buffer.from('0123456789abcdef')
const given = { ...cost, salt }
const pepper = Buffer.from('pepper')
const stored = await original.hash('correct horse', given)

const data: [name: string, password: string | Buffer][] = [
  ['nothing', ''],
  ['a word', 'correct horse'],
  ['a kilobyte', 'x'.repeat(1_024)],
  ['UTF-8', 'ä🔑'],
  ['a lone surrogate', 'x\ud800y'],
  ['a NUL', 'a\0b'],
  ['bytes', Buffer.from('bytes')],
  ['no bytes', Buffer.alloc(0)],
  ['bytes that are no text', Buffer.from('00ff9f92d30180c0ffee', 'hex')],
]

const hashes: Case[] = data.flatMap(([name, password]): Case[] => [
  [`hash: ${name}`, (argon2) => argon2.hash(password, given)],
  [`hash: ${name}, raw, with a secret`, (argon2) => argon2.hash(password, { ...given, secret: pepper, raw: true })],
  [
    `verify: ${name}`,
    async (argon2) => [
      await argon2.verify(await original.hash(password, cost), password),
      await argon2.verify(await original.hash(password, cost), `${password}!`),
    ],
  ],
  [
    `verify: ${name}, with a secret`,
    async (argon2) => {
      const hash = await original.hash(password, { ...cost, secret: pepper })
      const secrets = [pepper, Buffer.from('salt'), undefined]
      return await Promise.all(secrets.map((secret) => argon2.verify(hash, password, { secret })))
    },
  ],
])

const options: [name: string, options: object | null | undefined][] = [
  ['argon2i', { type: 1 }],
  ['argon2d', { type: 0 }],
  ['version 16', { version: 16 }],
  ['argon2i, version 16', { version: 16, type: 1 }],
  ['two lanes', { parallelism: 2 }],
  ['one pass', { timeCost: 1 }],
  ['a digest of 4 bytes', { hashLength: 4 }],
  ['a digest of 64 bytes', { hashLength: 64 }],
  ['a digest of 500 bytes', { hashLength: 500 }],
  ['a salt of 8 bytes', { salt: Buffer.alloc(8, 1) }],
  ['a salt of 64 bytes', { salt: Buffer.alloc(64, 1) }],
  ['an empty secret', { secret: Buffer.alloc(0) }],
  ['associated data', { associatedData: Buffer.from('user 7') }],
  ['associated data and a secret', { associatedData: Buffer.from('user 7'), secret: pepper }],
  ['memory as text', { memoryCost: '64' }],
  ['passes as text', { timeCost: '2' }],
  ['memory with a fraction', { memoryCost: 64.5 }],
  ['a salt of 7 bytes', { salt: Buffer.alloc(7) }],
  ['an empty salt', { salt: Buffer.alloc(0) }],
  ['a salt that is text', { salt: '0123456789abcdef' }],
  ['a salt that is an array', { salt: [1, 2, 3] }],
  ['a salt that is an Uint8Array', { salt: new Uint8Array(16) }],
  ['a secret that is text', { secret: 'pepper' }],
  ['no secret', { secret: null }],
  ['associated data that is text', { associatedData: 'user 7' }],
  ['too little memory', { memoryCost: 7 }],
  ['too little memory for its lanes', { memoryCost: 31, parallelism: 4 }],
  ['too much memory', { memoryCost: 2 ** 32 }],
  ['memory that is none', { memoryCost: 'much' }],
  ['no memory', { memoryCost: undefined }],
  ['no pass', { timeCost: 0 }],
  ['passes that are not given', { timeCost: undefined }],
  ['too many passes', { timeCost: 2 ** 32 }],
  ['no lane', { parallelism: 0 }],
  ['too many lanes', { parallelism: 2 ** 24 }],
  ['more lanes than memory', { parallelism: 2 ** 24 - 1 }],
  ['no digest', { hashLength: 0 }],
  ['a digest of 3 bytes', { hashLength: 3 }],
  ['a digest that is too long', { hashLength: 2 ** 32 }],
  ['type 3', { type: 3 }],
  ['a type by its name', { type: 'argon2id' }],
]

const withOptions: Case[] = options.flatMap(([name, each]): Case[] => [
  [`hash: ${name}`, (argon2) => argon2.hash('correct horse', { ...given, ...each })],
  [`hash: ${name}, raw`, (argon2) => argon2.hash('correct horse', { ...given, ...each, raw: true })],
])

const typed: Case[] = [
  undefined,
  null,
  0,
  12n,
  true,
  {},
  [],
  [1, 2],
  new Uint8Array([1, 2]),
  new ArrayBuffer(2),
].flatMap((value): Case[] => {
  const name = `${Object.prototype.toString.call(value)} ${String(value)}`
  return [
    [`hash: ${name} as a password`, (argon2) => argon2.hash(value, given)],
    [`verify: ${name} as a password`, (argon2) => argon2.verify(stored, value)],
    [`verify: ${name} as a hash`, (argon2) => argon2.verify(value, 'correct horse')],
    [`needsRehash: of ${name}`, (argon2) => argon2.needsRehash(value)],
  ]
})

const malformed: [name: string, text: string][] = [
  ['nothing', ''],
  ['a word', 'password'],
  ['a dollar', '$'],
  ['a name alone', '$argon2id'],
  ['another algorithm', '$scrypt$ln=1,r=8,p=1$c29tZXNhbHQ$c29tZXNhbHQ'],
  ['bcrypt', '$2b$04$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'],
  ['another variant', stored.replace('argon2id', 'argon2x')],
  ['of another variant', stored.replace('argon2id', 'argon2i')],
  ['without its version', stored.replace('$v=19', '')],
  ['of version 16', stored.replace('v=19', 'v=16')],
  ['in another order', stored.replace('m=64,t=2,p=1', 'p=1,t=2,m=64')],
  ['with padding', `${stored}=`],
  ['with a parameter of its own', stored.replace('p=1', 'p=1,x=1')],
  ['with a parameter twice', stored.replace('p=1', 'p=2,p=1')],
  ['without a parameter', stored.replace(',p=1', '')],
  ['without parameters', stored.replace('$m=64,t=2,p=1', '')],
  ['with parameters without values', stored.replace('m=64,t=2,p=1', 'm,t,p')],
  ['without digest', stored.replace(/\$[^$]*$/, '')],
  ['with an empty digest', stored.replace(/[^$]*$/, '')],
  ['with a short digest', stored.replace(/[^$]*$/, 'AAAA')],
  ['with a digest of 4 bytes', stored.replace(/[^$]*$/, 'AAAAAA')],
  ['with a short salt', stored.replace(/\$[^$]*\$([^$]*)$/, '$AAAA$$$1')],
  ['with one field more', `${stored}$AAAA`],
  ['without a pass', stored.replace('t=2', 't=0')],
  ['with too little memory', stored.replace('m=64', 'm=4')],
  ['with more passes', stored.replace('t=2', 't=3')],
  ['with text for a number', stored.replace('m=64', 'm=abc')],
  ['with something before it', ` ${stored}`],
  ['with something after it', `${stored}\n`],
]

const malformedHashes: Case[] = malformed.flatMap(([name, text]): Case[] => [
  [`verify: a hash that is ${name}`, (argon2) => argon2.verify(text, 'correct horse')],
  [`needsRehash: a hash that is ${name}`, (argon2) => argon2.needsRehash(text, cost)],
])

const rehashes: Case[] = [
  undefined,
  {},
  cost,
  { ...cost, version: 16 },
  { ...cost, timeCost: 3 },
  { ...cost, parallelism: 2 },
  { ...cost, memoryCost: '64' },
  { ...cost, memoryCost: undefined },
  { ...cost, hashLength: 64 },
  null,
].map((each): Case => [`needsRehash: ${JSON.stringify(each)}`, (argon2) => argon2.needsRehash(stored, each)])

const more: Case[] = [
  ['verify: options that are null', (argon2) => argon2.verify(stored, 'correct horse', null)],
  ['verify: a secret that is text', (argon2) => argon2.verify(stored, 'correct horse', { secret: 'pepper' })],
  [
    'verify: associated data is in the hash',
    async (argon2) => {
      const hash = await original.hash('correct horse', { ...given, associatedData: Buffer.from('user 7') })
      return [await argon2.verify(hash, 'correct horse'), await argon2.verify(hash, 'correct hors')]
    },
  ],
]

compareAll([...hashes, ...withOptions, ...typed, ...malformedHashes, ...rehashes, ...more], original, ours)

test('the names are those of the package', () => {
  assert.deepEqual(Object.keys(ours).sort(), Object.keys(original).sort())
  for (const name of ['argon2d', 'argon2i', 'argon2id'] as const) assert.equal(ours[name], original[name])
})

test('a new hash has the costs of the package, another salt each time, and is the original’s', async () => {
  const [one, other] = await Promise.all([ours.hash('correct horse'), ours.hash('correct horse', {})])
  assert.notEqual(one, other)
  assert.match(one, /^\$argon2id\$v=19\$m=65536,t=3,p=4\$[\w+/]{22}\$[\w+/]{43}$/)
  assert.equal(await original.verify(one, 'correct horse'), true)
  assert.equal(ours.needsRehash(one), false)
})

test('what no worker takes is refused by its code', async () => {
  const beyond = [{ memoryCost: 2 ** 20 + 1 }, { timeCost: 65 }, { parallelism: 17, memoryCost: 512 }]
  for (const each of [...beyond, { hashLength: 1_025 }, { version: 18 }])
    await rejectsWith('unsupported_hash', ours.hash('x', { ...given, ...each }))
  await rejectsWith('unsupported_hash', ours.verify(stored.replace('t=2', 't=65'), 'correct horse'))
  await rejectsWith('unsupported_hash', ours.verify(stored.replace('v=19', 'v=18'), 'correct horse'))
})
