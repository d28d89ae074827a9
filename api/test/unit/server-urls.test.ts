// Passwords in the URLs of PostgreSQL, Redis and the mail server: read as they are, or refused in
// one sentence that shows no piece of them.
import assert from 'node:assert/strict'
import { parseRedisUrl } from '@spillway/queue/redis/url'
import { test } from 'vitest'
import { connectionTo } from '../../../prisma/src/connection.ts'
import { parseSmtpUrl } from '../../src/mail/smtp.ts'

interface Read {
  host: string
  password: string | undefined
}

function readDatabaseUrl(url: string): Read {
  const { hostname, password } = new URL(connectionTo(url).connectionString)
  return { host: hostname, password: decodeURIComponent(password) }
}

function readRedisUrl(url: string): Read {
  const target = parseRedisUrl(url)
  return {
    host: target.kind === 'single' && 'host' in target.node ? target.node.host : '',
    password: target.login.password,
  }
}

const settings: [name: string, prefix: string, suffix: string, read: (url: string) => Read][] = [
  ['DATABASE_URL', 'postgresql://', '/shop', readDatabaseUrl],
  ['REDIS_URL', 'redis://', '/1', readRedisUrl],
  ['SMTP_URL', 'smtps://', '', parseSmtpUrl],
]
const passwords = [
  ...['12/hush', '5432#hush', 'x?hush=1', 'x@hush:1', '1:hush'],
  ...['100%hush', '%zzhush', 'hush+x', 'hush x', 'hush\\x', 'hüsh', '//hush', 'hush,x'],
]

for (const [setting, prefix, suffix, read] of settings) {
  test.each(passwords)(`${setting} with the password %s, as it is and encoded`, (password) => {
    const encoded = `${prefix}ann:${encodeURIComponent(password)}@server.test${suffix}`
    assert.deepEqual(hostAndPassword(read(encoded)), { host: 'server.test', password })
    const raw = `${prefix}ann:${password}@server.test${suffix}`
    try {
      assert.deepEqual(hostAndPassword(read(raw)), { host: 'server.test', password })
    } catch (error) {
      assert.ok(error instanceof Error && !(error instanceof assert.AssertionError), String(error))
      assert.match(error.message, new RegExp(`^${setting} [^\\n]+$`))
      assert.doesNotMatch(error.message, /h[uü]sh|zz|12\b|100|\bann\b|server\.test/)
    }
  })
}

function hostAndPassword({ host, password }: Read): Read {
  return { host, password }
}

test('parameters of DATABASE_URL reach the driver as they are meant', () => {
  const url =
    'postgresql://one/shop?sslrootcert=/ca%2B1.pem&options=-c+work_mem=8MB&channel_binding=require&schema=public'
  const { searchParams } = new URL(connectionTo(url).connectionString)
  const { options = '', ...others } = Object.fromEntries(searchParams)
  assert.deepEqual(others, { sslrootcert: '/ca+1.pem', channel_binding: 'require' })
  // What Spillway needs comes last, and so takes precedence.
  assert.ok(options.startsWith('-c work_mem=8MB -c timezone=UTC '), options)
})

test.each([
  ['postgresql:///shop?host=/run/postgresql', '/run/postgresql', '5432'],
  ['postgresql://ann:hush@localhost:5433/shop?host=/cloudsql/a:b:c', '/cloudsql/a:b:c', '5433'],
])('%s is a Unix socket', (url, folder, port) => {
  const { pathname, port: given, searchParams } = new URL(connectionTo(url).connectionString)
  assert.deepEqual([pathname, given || '5432', searchParams.get('host')], ['/shop', port, folder])
  assert.deepEqual(connectionTo(url).place, { host: folder, port: Number(port), database: 'shop' })
})

test.each([
  ['postgresql://one,two/shop', /one host: for several servers, the address or pooler that leads to the primary/],
  ['postgresql://one/shop?host=two', /the folder of a Unix socket; the host of a server stands before the path/],
  ['postgresql:///shop', /names no host/],
])('%s says what is not supported', (url, sentence) => assert.throws(() => connectionTo(url), sentence))

test.each([
  ['DATABASE_URL', 'postgresql://one,two/shop', connectionTo],
  ['DATABASE_URL', 'postgresql://one/shop?host=hush', connectionTo],
  ['DATABASE_URL', 'postgresql://one/shop?sslmode=require&sslmode=hush', connectionTo],
  ['DATABASE_URL', 'mysql://ann:hush@one/shop', connectionTo],
  ['SMTP_URL', 'smtp://one/hush', parseSmtpUrl],
  ['SMTP_URL', 'smtp://one?nam=hush', parseSmtpUrl],
  ['SMTP_URL', 'hush:25', parseSmtpUrl],
] as const)('%s refuses %s', (setting, url, parse) => {
  assert.throws(
    () => parse(url),
    ({ message }: Error) => new RegExp(`^${setting} [^\\n]+$`).test(message) && !message.includes('hush'),
  )
})
