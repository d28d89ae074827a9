import assert from 'node:assert/strict'
import { test } from 'vitest'
import { parseRedisUrl } from '../../src/redis/url.ts'

const forms: [url: string, target: ReturnType<typeof parseRedisUrl>][] = [
  ['redis://cache', { kind: 'single', login: {}, node: { host: 'cache', port: 6379 }, database: 0 }],
  ['redis://cache:6380/', { kind: 'single', login: {}, node: { host: 'cache', port: 6380 }, database: 0 }],
  ['redis://10.0.0.7:6380/3', { kind: 'single', login: {}, node: { host: '10.0.0.7', port: 6380 }, database: 3 }],
  ['redis://cache:65535', { kind: 'single', login: {}, node: { host: 'cache', port: 65_535 }, database: 0 }],
  [
    'redis://ann@cache/12',
    { kind: 'single', login: { username: 'ann' }, node: { host: 'cache', port: 6379 }, database: 12 },
  ],
  [
    'rediss://cache/2?family=6&ca=/etc/redis/ca.pem&cert=%2Fetc%2Fc.pem&key=/etc/a=b.pem',
    {
      kind: 'single',
      login: { tls: { ca: '/etc/redis/ca.pem', cert: '/etc/c.pem', key: '/etc/a=b.pem' }, family: 6 },
      node: { host: 'cache', port: 6379 },
      database: 2,
    },
  ],
  [
    'redis://cache?family=0',
    { kind: 'single', login: { family: 0 }, node: { host: 'cache', port: 6379 }, database: 0 },
  ],
  [
    'rediss+cluster://one,two?ca=/ca.pem',
    {
      kind: 'cluster',
      login: { tls: { ca: '/ca.pem' } },
      nodes: [
        { host: 'one', port: 6379 },
        { host: 'two', port: 6379 },
      ],
    },
  ],
  ['rediss://cache', { kind: 'single', login: { tls: {} }, node: { host: 'cache', port: 6379 }, database: 0 }],
  [
    'redis://ann:p%40ss%2Fw%3Ard%25@cache',
    {
      kind: 'single',
      login: { username: 'ann', password: 'p@ss/w:rd%' },
      node: { host: 'cache', port: 6379 },
      database: 0,
    },
  ],
  [
    'redis://:secret@[::1]:6380/1',
    { kind: 'single', login: { password: 'secret' }, node: { host: '::1', port: 6380 }, database: 1 },
  ],
  ['redis://[2001:db8::7]', { kind: 'single', login: {}, node: { host: '2001:db8::7', port: 6379 }, database: 0 }],
  [
    'redis+sentinel://ann:secret@one,two:26380/main/12',
    {
      kind: 'sentinel',
      login: { username: 'ann', password: 'secret' },
      sentinelLogin: {},
      nodes: [
        { host: 'one', port: 26379 },
        { host: 'two', port: 26380 },
      ],
      master: 'main',
      database: 12,
    },
  ],
  [
    'rediss+sentinel://[::1]/main',
    {
      kind: 'sentinel',
      login: { tls: {} },
      sentinelLogin: {},
      nodes: [{ host: '::1', port: 26379 }],
      master: 'main',
      database: 0,
    },
  ],
  [
    'redis+sentinel://:secret@one/main?sentinelUsername=guard&sentinelPassword=a+b%3D=',
    {
      kind: 'sentinel',
      login: { password: 'secret' },
      sentinelLogin: { username: 'guard', password: 'a+b==' },
      nodes: [{ host: 'one', port: 26379 }],
      master: 'main',
      database: 0,
    },
  ],
  [
    'redis+sentinel://one/main?sentinelPassword',
    {
      kind: 'sentinel',
      login: {},
      sentinelLogin: {},
      nodes: [{ host: 'one', port: 26379 }],
      master: 'main',
      database: 0,
    },
  ],
  [
    'rediss+cluster://:secret@one,[::2]:7001',
    {
      kind: 'cluster',
      login: { password: 'secret', tls: {} },
      nodes: [
        { host: 'one', port: 6379 },
        { host: '::2', port: 7001 },
      ],
    },
  ],
]

for (const [url, target] of forms) {
  test(`${url} is understood`, () => assert.deepEqual(parseRedisUrl(url), target))
}

test('an invalid Redis URL is refused in one sentence that names the variable and repeats nothing of it', () => {
  const wrong = [
    'ann:hush@cache',
    'https://ann:hush@cache',
    'redis://',
    'xredis://cache',
    'redis+sentinel://cache/main/1\nhush',
    'redis+sentinel://cache//main',
    'redis://ann:hu/sh@cache',
    'redis://ann:hu@sh@cache',
    'redis://ann:hush:cache',
    'redis://ann:hu%sh@cache',
    'redis://cache:hush',
    'redis://cache:65536',
    'redis://cache:0',
    'redis://cache?password=hush',
    'redis://cache/hush',
    'redis://cache/-1',
    'redis://hush,cache',
    'redis://cache,',
    'redis+sentinel://ann:hush@cache',
    'redis+sentinel://ann:hush@cache/',
    'redis+sentinel://ann:hush@cache/main/two',
    'redis+sentinel://ann:hush@cache/main?sentinelPass=hush',
    'redis+sentinel://ann:hush@cache/main?sentinelPassword=hush%',
    'redis://ann:hush@cache/0?sentinelPassword=hush',
    'redis://cache?sentinelUsername=hush',
    'redis://cache?ca=/hush',
    'redis+cluster://cache?cert=/hush&key=/hush',
    'rediss://cache?cert=/hush',
    'rediss://cache?key=/hush',
    'rediss://cache?family=5',
    'rediss://cache?family=hush',
    'rediss://cache?ca=/hush&ca=/hush',
    'rediss://cache?CA=/hush',
    'rediss://cache?rejectUnauthorized=hush',
    'redis+cluster://ann:hush@cache/1',
    'redis+cluster://ann:hush@cache,ann:hush@cache',
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
      'REDIS_URL takes the parameters family, ca, cert, key, sentinelUsername, sentinelPassword, each once, and no others',
  })
})
