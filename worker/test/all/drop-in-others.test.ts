// Every case is run through `bcryptjs`, `@node-rs/bcrypt` and `@node-rs/argon2`, and replacements.
import { createRequire } from 'node:module'
import ourBcryptjs from '@spillway/client/bcryptjs'
import ourArgon2 from '@spillway/client/node-rs-argon2'
import ourBcrypt from '@spillway/client/node-rs-bcrypt'
import { sharePasswords } from '@spillway/client/shared-passwords'
import bcryptjs from 'bcryptjs'
import { afterAll } from 'vitest'
import { type Case, called, compareAll, passwordsBeside, signatures } from '../drop-in.ts'

const passwords = passwordsBeside()
sharePasswords(passwords)
afterAll(() => passwords.close())

/** Version 1 of @node-rs/bcrypt, which the client has. */
const ofClient = createRequire(new URL('../../client/package.json', import.meta.url))

const SALT = 'CCCCCCCCCCCCCCCCCCCCC.'
const known = `$2a$05$${SALT}E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW`

const data: [name: string, password: string][] = [
  ['nothing', ''],
  ['a word', 'correct horse'],
  ...[71, 72, 73, 254, 255, 256, 400].map((length): [string, string] => [
    `${length} bytes`,
    'abc'.repeat(200).slice(0, length),
  ]),
  ['74 bytes of UTF-8', 'ä'.repeat(37)],
  ['a character across the 72nd byte', `x${'ä'.repeat(40)}`],
  ['an emoji', '🔑🔑'],
  ['a NUL', 'a\0b'],
  ['a NUL at the end', 'U*U\0'],
  ['72 bytes and a NUL', `${'x'.repeat(72)}\0y`],
]
const mistakes = [undefined, null, 10n, -1, 0, 3, 'x', '', '10', true, {}, [], Symbol('x'), () => undefined]

const texts: [name: string, text: string][] = [
  ['nothing', ''],
  ['a word', 'password'],
  ['$2y', known.replace('2a', '2y')],
  ['$2x', known.replace('2a', '2x')],
  ['$2', known.replace('2a', '2')],
  ['$2c', known.replace('2a', '2c')],
  ['version 3', known.replace('2a', '3a')],
  ['rounds of 3', known.replace('05', '03')],
  ['rounds of 32', known.replace('05', '32')],
  ['one character less', known.slice(0, -1)],
  ['one character more', `${known}x`],
  ['stray bits in the salt', known.replace('C.', 'C/')],
  ['a short salt', known.slice(0, 20)],
  ['a wrong character', known.replace('E5YP', 'E5!P')],
  ['a salt alone', known.slice(0, 29)],
]

const ofBcryptjs: Case[] = [
  ...data.flatMap(([name, password]) =>
    ['2a', '2b', '2y', ...(password === '' ? [] : ['2'])].flatMap((version): Case[] => {
      const salt = `$${version}$04$${SALT}`
      const stored = bcryptjs.hashSync(password, salt)
      return [
        [`hash: ${name}, ${version}`, (api) => api.hash(password, salt)],
        [`hashSync: ${name}, ${version}`, (api) => api.hashSync(password, salt)],
        [`compare: ${name}, ${version}`, (api) => api.compare(password, stored)],
        [`compare: ${name} and more, ${version}`, (api) => api.compare(`!${password}`, stored)],
        [`compareSync: ${name}, ${version}`, (api) => api.compareSync(password, stored)],
        [`compare: ${name}, called, ${version}`, (api) => called((done) => api.compare(password, stored, done))],
      ]
    }),
  ),
  ...texts.flatMap(([name, text]): Case[] => [
    [`hash: a salt that is ${name}`, (api) => api.hash('x', text)],
    [`hashSync: a salt that is ${name}`, (api) => api.hashSync('x', text)],
    [`compare: ${name}`, (api) => api.compare('U*U', text)],
    [`compareSync: ${name}`, (api) => api.compareSync('U*U', text)],
    [`getRounds: ${name}`, (api) => api.getRounds(text)],
    [`getSalt: ${name}`, (api) => api.getSalt(text)],
    [`truncates: ${name}`, (api) => api.truncates(text)],
  ]),
  ...mistakes.flatMap((value): Case[] => {
    const name = typeof value === 'symbol' ? 'a symbol' : `${typeof value} ${String(value)}`
    const isLength = typeof value === 'number' || value === undefined || value === null || value === ''
    return [
      [`hash: a password of ${name}`, async (api) => String(await api.hash(value, 4)).slice(0, 7)],
      [`compare: a password of ${name}`, (api) => api.compare(value, known)],
      [`compare: a hash of ${name}`, (api) => api.compare('x', value)],
      [`compareSync: a hash of ${name}`, (api) => api.compareSync('x', value)],
      ...(isLength ? [] : ([[`hash: a salt of ${name}`, (api) => api.hash('x', value)]] satisfies Case[])),
      ...(typeof value === 'function'
        ? []
        : ([
            [`genSaltSync: ${name}`, (api) => String(api.genSaltSync(value)).slice(0, 7)],
            [`genSalt: ${name}`, async (api) => String(await api.genSalt(value)).slice(0, 7)],
            [`hash: a callback of ${name}`, async (api) => String(await api.hash('x', 4, value)).slice(0, 7)],
          ] satisfies Case[])),
      [`getRounds: ${name}`, (api) => api.getRounds(value)],
      [`getSalt: ${name}`, (api) => api.getSalt(value)],
      [`truncates: ${name}`, (api) => api.truncates(value)],
    ]
  }),
  ['hash, called: no salt', (api) => called((done) => api.hash('x', 'password', done))],
  ['genSalt, called', async (api) => String(await called((done) => api.genSalt(5, done))).slice(0, 7)],
  ['genSalt, called without rounds', async (api) => String(await called((done) => api.genSalt(done))).slice(0, 7)],
  ['its functions', ({ default: _, ...api }) => signatures(api)],
  ...[1, 2, 3, 4, 15, 16].flatMap((length): Case[] => [
    [
      `encodeBase64: ${length}`,
      (api) =>
        api.encodeBase64(
          Array.from({ length: 16 }, (_, n) => n * 15),
          length,
        ),
    ],
    [`decodeBase64: ${length}`, (api) => api.decodeBase64(SALT, length)],
  ]),
]
const { close: _ofBcryptjs, ...bcryptjsAlone } = ourBcryptjs
compareAll(ofBcryptjs, bcryptjs, bcryptjsAlone, { version: 'bcryptjs' })

const salt = Buffer.alloc(16, 7)
const theirs = ofClient('@node-rs/bcrypt')
const ofBcrypt: Case[] = [
  ...data.flatMap(([name, password]): Case[] => {
    const stored = theirs.hashSync(password, 4, salt)
    return [
      [`hash: ${name}`, (api) => api.hash(password, 4, salt)],
      [`hash: ${name} as bytes`, (api) => api.hash(Buffer.from(password), 4, salt)],
      [`hashSync: ${name}`, (api) => api.hashSync(password, 4, salt)],
      ...['2a', '2b', '2x', '2y', '2c', '2'].flatMap((version): Case[] => [
        [`verify: ${name}, ${version}`, (api) => api.verify(password, stored.replace('2b', version))],
        [`compare: ${name} and more, ${version}`, (api) => api.compare(`!${password}`, stored.replace('2b', version))],
      ]),
      [`verify: ${name} and a hash as bytes`, (api) => api.verify(Buffer.from(password), Buffer.from(stored))],
      [`verifySync: ${name}`, (api) => api.verifySync(password, stored)],
    ]
  }),
  ...texts.map(([name, text]): Case => [`verify: ${name}`, (api) => api.verify('U*U', text)]),
  ...[-1, 0, 3, 32, 40].map((cost): Case => [`hash: a cost of ${cost}`, (api) => api.hash('x', cost, salt)]),
  ...[0, 3, 20, 40].map(
    (length): Case => [`hash: a salt of ${length}`, (api) => api.hash('x', 4, Buffer.alloc(length, 9))],
  ),
  ['hash: a salt that is a text', (api) => api.hash('x', 4, 'sixteen characters')],
  ['hash: none of its own', async (api) => String(await api.hash('x', 4)).slice(0, 7)],
  ['genSalt', async (api) => String(await api.genSalt(5, '2a')).slice(0, 7)],
  ['the default', (api) => api.DEFAULT_COST],
  ['names', (api) => Object.keys(api).sort()],
]
const { close: _ofBcrypt, ...bcryptAlone } = ourBcrypt
compareAll(ofBcrypt, theirs, bcryptAlone, { version: '@node-rs/bcrypt' })

const argon2 = createRequire(import.meta.url)('@node-rs/argon2')
const cheap = { memoryCost: 64, timeCost: 1, salt }
const options: [name: string, options: object][] = [
  ['cheap', {}],
  ...[0, 1, 2].map((algorithm): [string, object] => [`algorithm ${algorithm}`, { algorithm }]),
  ['version 16', { version: 0 }],
  ['two lanes', { parallelism: 2 }],
  ['three passes', { timeCost: 3 }],
  ['a long digest', { outputLen: 64 }],
  ['a secret', { secret: Buffer.from('pepper') }],
  ['a long salt', { salt: Buffer.alloc(40, 3) }],
  ['too little memory', { memoryCost: 1 }],
  ['no pass', { timeCost: 0 }],
  ['a short salt', { salt: Buffer.alloc(3) }],
  ['a short digest', { outputLen: 2 }],
]
const ofArgon2: Case[] = [
  ...options.flatMap(([name, given]): Case[] => [
    [`hash: ${name}`, (api) => api.hash('correct horse', { ...cheap, ...given })],
    [`hashRaw: ${name}`, async (api) => (await api.hashRaw('correct horse', { ...cheap, ...given })).toString('hex')],
    [`hashSync: ${name}`, (api) => api.hashSync('correct horse', { ...cheap, ...given })],
  ]),
  ...options.slice(0, 10).flatMap(([name, given]): Case[] => {
    const stored = argon2.hashSync('correct horse', { ...cheap, ...given })
    const { secret } = { secret: undefined, ...given }
    return [
      [`verify: ${name}`, (api) => api.verify(stored, 'correct horse', { secret })],
      [`verify: ${name} without a secret`, (api) => api.verify(stored, 'correct horse')],
      [`verify: ${name}, wrong`, (api) => api.verify(Buffer.from(stored), Buffer.from('wrong'), { secret })],
      [`verifySync: ${name}`, (api) => api.verifySync(stored, 'correct horse', { secret })],
      [`parseOptions: ${name}`, (api) => api.parseOptions(stored)],
    ]
  }),
  ...data.flatMap(([name, password]): Case[] => [[`hash: ${name}`, (api) => api.hash(password, cheap)]]),
  ...texts.map(([name, text]): Case => [`verify: ${name}`, (api) => api.verify(text, 'x')]),
  ['the default', async (api) => String(await api.hash('x')).replace(/\$[^$]{22}\$.*/, '')],
  ['constants', (api) => [api.Algorithm.Argon2id, api.Version.V0x13]],
]
compareAll(ofArgon2, argon2, ourArgon2, { version: '@node-rs/argon2' })
