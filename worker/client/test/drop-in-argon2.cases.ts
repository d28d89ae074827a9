// What is run through the package `argon2` and through @spillway/client/argon2.
import type { Case, Untyped } from './drop-in.ts'
import { mistakes } from './drop-in.ts'

export const cost = { memoryCost: 64, timeCost: 2, parallelism: 1 }
const salt = Buffer.from('0123456789abcdef')
export const given = { ...cost, salt }
const pepper = Buffer.from('pepper')

/** @param original makes the hashes that are verified; `stored` is one of them */
export function argon2Cases(original: Untyped, stored: string): Case[] {
  const data: [name: string, password: string | Buffer][] = [
    ['nothing', ''],
    ['a word', 'correct horse'],
    ['UTF-8', 'ä🔑'],
    ['a lone surrogate', 'x\ud800y'],
    ['a NUL', 'a\0b'],
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
    ['two lanes', { parallelism: 2 }],
    ['one pass', { timeCost: 1 }],
    ['a digest of 4 bytes', { hashLength: 4 }],
    ['a digest of 64 bytes', { hashLength: 64 }],
    ['a salt of 8 bytes', { salt: Buffer.alloc(8, 1) }],
    ['a salt of 600 bytes', { salt: Buffer.alloc(600, 1) }],
    ['an empty secret', { secret: Buffer.alloc(0) }],
    ['associated data and a secret', { associatedData: Buffer.from('user 7'), secret: pepper }],
    ['memory as text', { memoryCost: '64' }],
    ['a salt of 7 bytes', { salt: Buffer.alloc(7) }],
    ['a salt that is text', { salt: '0123456789abcdef' }],
    ['a salt that is an Uint8Array', { salt: new Uint8Array(16) }],
    ['no secret', { secret: null }],
    ['associated data that is text', { associatedData: 'user 7' }],
    ['too little memory for its lanes', { memoryCost: 31, parallelism: 4 }],
    ['too much memory', { memoryCost: 2 ** 32 }],
    ['no memory', { memoryCost: undefined }],
    ['no pass', { timeCost: 0 }],
    ['no lane', { parallelism: 0 }],
    ['more lanes than memory', { parallelism: 2 ** 24 - 1 }],
    ['no digest', { hashLength: 0 }],
    ['a digest that is too long', { hashLength: 2 ** 32 }],
    ['a type by its name', { type: 'argon2id' }],
  ]

  const withOptions: Case[] = options.flatMap(([name, each]): Case[] => [
    [`hash: ${name}`, (argon2) => argon2.hash('correct horse', { ...given, ...each })],
    [`hash: ${name}, raw`, (argon2) => argon2.hash('correct horse', { ...given, ...each, raw: true })],
  ])

  // Of numbers those stand above, and versions beside these cases: the package hashes with any, and verifies with few.
  const wrong = mistakes.filter(([, value]) => typeof value !== 'number')
  const names = [
    'hashLength',
    'timeCost',
    'memoryCost',
    'parallelism',
    'type',
    'salt',
    'associatedData',
    'secret',
    'raw',
  ]
  const everyOption: Case[] = names.flatMap((name) =>
    wrong.flatMap(([what, value]): Case[] => [
      ...[false, true].map(
        (raw): Case => [`hash: ${name} is ${what}, raw ${raw}`, hashedWith({ ...given, ...{ raw, [name]: value } })],
      ),
      [`verify: ${name} is ${what}`, (argon2) => argon2.verify(stored, 'correct horse', { [name]: value })],
    ]),
  )
  // The version before takes no BigInt for needsRehash.
  const rehashesOfEvery: Case[] = ['timeCost', 'memoryCost', 'parallelism', 'version'].flatMap((name) =>
    wrong
      .filter(([, value]) => typeof value !== 'bigint')
      .map(
        ([what, value]): Case => [
          `needsRehash: ${name} is ${what}`,
          (argon2) => argon2.needsRehash(stored, { ...cost, [name]: value }),
        ],
      ),
  )

  /** What is the same with random salts: the text up to the salt, and whether it verifies */
  function hashedWith(options: { salt?: unknown }): Case[1] {
    return async (argon2: Untyped) => {
      const hash = await argon2.hash('correct horse', options)
      if (typeof hash !== 'string') return options.salt == null ? hash.length : hash
      return [hash.split('$').slice(0, -2).join('$'), await argon2.verify(hash, 'correct horse', options)]
    }
  }
  const bytes = [[1, 2], new Uint8Array([1, 2]), new ArrayBuffer(2)].map((value) => [String(value), value] as const)
  const typed: Case[] = [...mistakes, ...bytes].flatMap(([name, value]): Case[] => [
    [`hash: ${name} as a password`, (argon2) => argon2.hash(value, given)],
    [`verify: ${name} as a password`, (argon2) => argon2.verify(stored, value)],
    [`verify: ${name} as a hash`, (argon2) => argon2.verify(value, 'correct horse')],
    [`needsRehash: of ${name}`, (argon2) => argon2.needsRehash(value)],
  ])

  const malformed: [name: string, text: string][] = [
    ['nothing', ''],
    ['a word', 'password'],
    ['a name alone', '$argon2id'],
    ['bcrypt', '$2b$04$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'],
    ['another variant', stored.replace('argon2id', 'argon2x')],
    ['without its version', stored.replace('$v=19', '')],
    ['of version 16', stored.replace('v=19', 'v=16')],
    ['in another order', stored.replace('m=64,t=2,p=1', 'p=1,t=2,m=64')],
    ['with padding', `${stored}=`],
    ['with a parameter of its own', stored.replace('p=1', 'p=1,x=1')],
    ['without a parameter', stored.replace(',p=1', '')],
    ['with parameters without values', stored.replace('m=64,t=2,p=1', 'm,t,p')],
    ['without digest', stored.replace(/\$[^$]*$/, '')],
    ['with a digest of 4 bytes', stored.replace(/[^$]*$/, 'AAAAAA')],
    ['with one field more', `${stored}$AAAA`],
    ['without a pass', stored.replace('t=2', 't=0')],
    ['with more passes', stored.replace('t=2', 't=3')],
    ['with text for a number', stored.replace('m=64', 'm=abc')],
    ['with something before it', ` ${stored}`],
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
    { ...cost, parallelism: 2 },
    { ...cost, memoryCost: '64' },
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

  const malformedAndMore = [...malformedHashes, ...rehashes, ...rehashesOfEvery, ...more]
  return [...hashes, ...withOptions, ...everyOption, ...typed, ...malformedAndMore]
}
