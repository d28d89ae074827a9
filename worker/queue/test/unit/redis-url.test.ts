import assert from 'node:assert/strict'
import { test } from 'vitest'
import { parseRedisUrl } from '../../src/redis/url.ts'

type Target = ReturnType<typeof parseRedisUrl>
type Of<Kind> = Extract<Target, { kind: Kind }>
/** Nodes as `host:port`, which an IPv6 address begins with its colons. */
const toNodes = (...texts: string[]) =>
  texts.map((text) => ({ host: text.slice(0, text.lastIndexOf(':')), port: Number(text.split(':').at(-1)) }))
const single = (login: Of<'single'>['login'], host = 'cache', port = 6379, database = 0): Target => ({
  ...{ kind: 'single', login, node: { host, port }, database },
})
const socket = (login: Of<'single'>['login'], path: string, database = 0): Target => ({
  ...{ kind: 'single', login, node: { path }, database },
})
const cluster = (login: Of<'cluster'>['login'], ...nodes: string[]): Target => ({
  ...{ kind: 'cluster', login, nodes: toNodes(...nodes) },
})
const sentinel = (
  login: Of<'sentinel'>['login'],
  sentinelLogin: Of<'sentinel'>['sentinelLogin'],
  database: number,
  ...nodes: string[]
): Target => ({ kind: 'sentinel', login, sentinelLogin, nodes: toNodes(...nodes), master: 'main', database })

const forms: [url: string, target: Target][] = [
  ['redis://cache', single({})],
  ['redis://10.0.0.7:6380/3', single({}, '10.0.0.7', 6380, 3)],
  ['redis://ann@cache/12', single({ username: 'ann' }, 'cache', 6379, 12)],
  [
    'rediss://cache/2?family=6&ca=/etc/redis/ca.pem&cert=%2Fetc%2Fc.pem&key=/etc/a=b.pem',
    single({ tls: { ca: '/etc/redis/ca.pem', cert: '/etc/c.pem', key: '/etc/a=b.pem' }, family: 6 }, 'cache', 6379, 2),
  ],
  ['valkeys://ann:secret@cache:7000/1', single({ username: 'ann', password: 'secret', tls: {} }, 'cache', 7000, 1)],
  ['valkey+sentinel://one/main', sentinel({}, {}, 0, 'one:26379')],
  ['unix:///run/redis/a%20b.sock', socket({}, '/run/redis/a b.sock')],
  ['unix://ann:secret@/run/redis.sock?db=3', socket({ username: 'ann', password: 'secret' }, '/run/redis.sock', 3)],
  ['redis://ann:p%40ss%2Fw%3Ard%25@cache', single({ username: 'ann', password: 'p@ss/w:rd%' })],
  ['redis://:secret@[::1]:6380/1', single({ password: 'secret' }, '::1', 6380, 1)],
  ['rediss+cluster://:secret@one,[::2]:7001', cluster({ password: 'secret', tls: {} }, 'one:6379', '::2:7001')],
  [
    'redis+sentinel://ann:secret@one,two:26380/main/12',
    sentinel({ username: 'ann', password: 'secret' }, {}, 12, 'one:26379', 'two:26380'),
  ],
  ['rediss+sentinel://[::1]/main', sentinel({ tls: {} }, {}, 0, '::1:26379')],
  [
    'redis+sentinel://:secret@one/main?sentinelUsername=guard&sentinelPassword=a+b%3D=',
    sentinel({ password: 'secret' }, { username: 'guard', password: 'a+b==' }, 0, 'one:26379'),
  ],
  ['redis+sentinel://one/main?sentinelPassword', sentinel({}, {}, 0, 'one:26379')],
]

for (const [url, target] of forms) {
  test(`${url} is understood`, () => assert.deepEqual(parseRedisUrl(url), target))
}

test('an invalid Redis URL is refused in one sentence that names the variable and repeats nothing of it', () => {
  const wrong = [
    'ann:hush@cache',
    'redis://',
    'redis+sentinel://cache/main/1\nhush',
    'redis://ann:hu/sh@cache',
    'redis://ann:hu@sh@cache',
    'redis://ann:hu%sh@cache',
    'redis://cache:hush',
    'redis://cache:0',
    'unix://hush/redis.sock',
    'redis://cache?db=1',
    'redis://cache/hush',
    'redis://hush,cache',
    'redis+sentinel://ann:hush@cache',
    'redis+sentinel://ann:hush@cache/main/two',
    'redis+sentinel://ann:hush@cache/main?sentinelPass=hush',
    'redis://ann:hush@cache/0?sentinelPassword=hush',
    'redis://cache?ca=/hush',
    'redis+cluster://cache?cert=/hush&key=/hush',
    'rediss://cache?key=/hush',
    'rediss://cache?family=hush',
    'rediss://cache?ca=/hush&ca=/hush',
    'rediss://cache?rejectUnauthorized=hush',
    'redis+cluster://ann:hush@cache/1',
  ]
  for (const url of wrong) {
    assert.throws(
      () => parseRedisUrl(url),
      ({ message }: Error) => {
        assert.match(message, /^REDIS_URL [^\n]+$/, url)
        assert.doesNotMatch(message, /hu\b|sh\b|ann|cache|hush/, url)
        return true
      },
      url,
    )
  }
})

test('a parameter that is not known is refused with the names of those that are', () => {
  assert.throws(() => parseRedisUrl('redis://cache?CA=/ca.pem'), {
    message:
      'REDIS_URL takes the parameters family, db, ca, cert, key, sentinelUsername, sentinelPassword, each once, and no others',
  })
})
