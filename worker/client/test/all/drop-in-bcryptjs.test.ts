// Every case is run through `bcryptjs`, and the replacement.
import * as ourBcryptjs from '@spillway/client/bcryptjs'
import { sharePasswords } from '@spillway/client/shared-passwords'
import bcryptjs from 'bcryptjs'
import { afterAll } from 'vitest'
import { type Case, called, compareAll, passwordsBeside, signatures } from '../drop-in.ts'

const passwords = passwordsBeside()
sharePasswords(passwords)
afterAll(() => passwords.close())

const SALT = 'CCCCCCCCCCCCCCCCCCCCC.'
const known = `$2a$05$${SALT}E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW`

const data: [name: string, password: string][] = [
  ['nothing', ''],
  ['a word', 'correct horse'],
  ...[72, 73, 255].map((length): [string, string] => [`${length} bytes`, 'abc'.repeat(200).slice(0, length)]),
  ['74 bytes of UTF-8', 'ä'.repeat(37)],
  ['a character across the 72nd byte', `x${'ä'.repeat(40)}`],
  ['an emoji', '🔑🔑'],
  ['a lone surrogate', 'x\ud800y'],
  ['surrogates in the wrong order', '\udc00\ud800'],
  ['a NUL', 'a\0b'],
  ['a NUL at the end', 'U*U\0'],
]
const mistakes = [undefined, null, 10n, -1, 0, 3, 'x', '', '10', true, {}, [], Symbol('x'), () => undefined]

const texts: [name: string, text: string][] = [
  ['nothing', ''],
  ['a word', 'password'],
  ['$2y', known.replace('2a', '2y')],
  ['$2x', known.replace('2a', '2x')],
  ['$2', known.replace('2a', '2')],
  ['rounds of 32', known.replace('05', '32')],
  ['one character less', known.slice(0, -1)],
  ['one character more', `${known}x`],
  ['stray bits in the salt', known.replace('C.', 'C/')],
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
