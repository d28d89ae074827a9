// How a gateway begins: with what is there, and with one sentence when it cannot.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { startProxy } from '@spillway/infra/harness/tcp-proxy'
import { startProcess } from '@spillway/infra/processes/node-process'
import { listening } from '@spillway/infra/processes/port'
import { until } from '@spillway/infra/processes/until'
import { newSealKey, newSigningKey } from '@spillway/infra/start/secrets'
import { test } from 'vitest'
import { readGatewayConfig } from '../../src/config.ts'
import { asIs, expect, newCredentials } from '../client.ts'
import { openSystem, readiness, startQuietly } from '../system.ts'

const system = await openSystem()
await system.worker()
const keys = { SPILLWAY_SEAL_KEYS: newSealKey(), SPILLWAY_JWT_KEYS: newSigningKey() }
const away = { DATABASE_URL: 'postgresql://x:y@127.0.0.1:1/z', REDIS_URL: 'redis://127.0.0.1:1' }
const complete = { ...keys, ...away, PORT: '0', OPS_PORT: '0' }

test('the first requests of a gateway that has just begun to listen are answered, not put off', async (t) => {
  const { api } = await system.gateway()
  const credentials = await api.newAccount()
  // A busy machine may be late with PostgreSQL, Redis or the worker.
  const fresh = await until(async () => {
    const fresh = await startQuietly(system.environment)
    t.onTestFinished(() => fresh.close())
    return (await fresh.api.login(credentials, asIs)).status === 200 ? fresh : undefined
  })
  expect(201, await fresh.api.register(newCredentials()))
})

test('PostgreSQL and Redis may come later', async (t) => {
  const [database, redis] = [
    await startProxy(system.namespace.databaseUrl),
    await startProxy(system.namespace.redisUrl),
  ]
  for (const proxy of [database, redis]) proxy.refuse()
  const gateway = await startQuietly({ ...system.environment, DATABASE_URL: database.url, REDIS_URL: redis.url })
  t.onTestFinished(async () => {
    await gateway.close()
    await Promise.all([database.close(), redis.close()])
  })
  assert.deepEqual((await readiness(gateway.url)).checks, { database: 'failing', queue: 'failing' })
  assert.equal((await gateway.api.call('GET', '/healthz')).status, 200)
  expect(503, await gateway.api.register(newCredentials(), asIs))

  database.restore()
  const databaseAlone = { database: 'ok', queue: 'failing' }
  await until(async () => assert.deepEqual((await readiness(gateway.url)).checks, databaseAlone) ?? true)
  redis.restore()
  await until(async () => (await readiness(gateway.url)).workers === 1)
  await gateway.api.signedIn()
})

test('a gateway that finds neither database nor Redis says so once, with the place, and ends with exit code 0', async (t) => {
  const mail = {
    SMTP_URL: 'smtp://127.0.0.1:1',
    MAIL_FROM: 'no-reply@example.test',
    MAIL_CONFIRM_URL: 'https://app.example.test/confirm#{token}',
    MAIL_RESET_URL: 'https://app.example.test/reset#{token}',
  }
  const DATABASE_URL = 'postgresql://x:hush@127.0.0.1:1/shop'
  const env = { ...system.environment, ...mail, DATABASE_URL, REDIS_URL: away.REDIS_URL }
  const gateway = startProcess({ entry: 'api/dist/main.js', env })
  t.onTestFinished(() => gateway.close())
  const { host, port, database, reason } = await gateway.waitForLog(({ msg }) => msg === 'the database cannot be used')
  assert.deepEqual(
    { host, port, database, reason },
    { host: '127.0.0.1', port: 1, database: 'shop', reason: 'nothing answers there' },
  )
  const unread = await gateway.waitForLog(({ msg }) => msg === 'blocked networks could not be read')
  assert.equal(unread.reason, reason)
  const { url } = await gateway.waitForLog(({ msg }) => msg === 'gateway listening')
  assert.equal((await readiness(String(url))).checks.database, 'failing')
  for (let n = 0; n < 20; n += 1) assert.equal((await fetch(`${url}/v1/users`, { method: 'POST' })).ok, false)
  await gateway.waitForLog(({ msg }) => msg === 'redis connection failed')
  const listeningAt = performance.now()
  await until(() => performance.now() - listeningAt > 1_000)
  // Once in ten seconds for all of its connections.
  const lines = gateway.logs.filter(({ msg }) => msg === 'redis connection failed')
  assert.ok(lines.length <= 1 + Math.floor(process.uptime() / 10), gateway.output())
  assert.ok(lines.every(({ level, err }) => level === 'warn' && err === undefined))
  assert.doesNotMatch(gateway.output(), /hush|"stack"/)
  assert.deepEqual(await gateway.stop(), { code: 0, signal: null }, gateway.output())
})

test('PostgreSQL and Redis are reached by Unix sockets', async (t) => {
  const dir = await scratchDir(t)
  /** A socket that leads to a server. */
  const lead = async (url: string, path: string) => {
    const { hostname, port } = new URL(url)
    const server = createServer((client) => {
      const there = connect(Number(port), hostname)
      client.pipe(there).pipe(client)
      for (const [one, other] of [
        [client, there],
        [there, client],
      ] as const)
        one.on('error', () => other.destroy())
    })
    await once(server.listen(path), 'listening')
    t.onTestFinished(() => void server.close())
  }
  const { databaseUrl, redisUrl } = system.namespace
  await lead(databaseUrl, join(dir, '.s.PGSQL.5432'))
  await lead(redisUrl, join(dir, 'redis.sock'))
  const loginOf = (url: string) => /\/\/([^@]*@)/.exec(url)?.[1] ?? ''
  const gateway = await startQuietly({
    ...system.environment,
    DATABASE_URL: `postgresql://${loginOf(databaseUrl)}/${databaseUrl.split('/').at(-1)}?host=${dir}`,
    REDIS_URL: `unix://${loginOf(redisUrl)}${dir}/redis.sock`,
  })
  t.onTestFinished(() => gateway.close())
  await until(async () => (await readiness(gateway.url)).workers === 1)
  await gateway.api.signedIn()
})

test('a port that is taken is told in one sentence, with exit code 1', async (t) => {
  const other = createServer()
  const port = String(await listening(other))
  t.onTestFinished(() => void other.close())
  await assert.rejects(startQuietly({ ...complete, OPS_PORT: port }), { code: 'EADDRINUSE' })
  // It stops at once: no balancer is warned. The drain is longer than a test file may take.
  assert.match(await refusal({ ...complete, PORT: port, DRAIN_MS: '300000' }), new RegExp(`EADDRINUSE.*${port}$`))
})

test('each wrong value is named, and never shown', () => {
  const wrong: Record<string, string> = {
    PORT: '65536',
    QUEUE_PREFIX: 'no-braces-4711',
    LOGIN_WAIT_MS: '4711s',
    TRUST_PROXY: 'proxy-4711',
    CORS_ORIGINS: 'https://app.example.test,https://4711.example.test/',
    ISSUER: 'http://4711.example.test',
    REGISTRATION: 'ajar-4711',
    ACCESS_TOKEN_TTL_S: '86401',
    PASSWORD_MIN_LENGTH: '7',
    OPS_HOST: '0.0.0.0',
  }
  readGatewayConfig(complete)
  for (const [name, value] of Object.entries(wrong)) {
    assert.throws(
      () => readGatewayConfig({ ...complete, [name]: value }),
      ({ message }: Error) => message.includes(name) && !message.includes('4711'),
      name,
    )
  }
})

test('an issuer is a name, or a URL in the one form that verifiers compare', () => {
  const read = (ISSUER: string) => readGatewayConfig({ ...complete, ISSUER })
  for (const issuer of [
    ...['spillway', 'https://login.example.test', 'https://example.test:8443/a/b-c', 'http://localhost:3000'],
    ...['http://127.0.0.1', 'http://[::1]:3000/login'],
  ])
    assert.equal(read(issuer).issuer, issuer)
  for (const issuer of [
    ...['https://example.test/', 'https://EXAMPLE.test', 'https://example.test:443', 'https://example.test?a'],
    ...['https://user@example.test', 'http://example.test', 'https://example.test/a*', 'https://example.test/a/../b'],
  ])
    assert.throws(() => read(issuer), /ISSUER/, issuer)
})

test('a password of operators that can be guessed is refused where others reach the port, and not on the loopback', () => {
  for (const OPS_PASSWORD of ['x', 'elevenchars', 'Password1234', '123456789012']) {
    const env = { ...complete, OPS_PASSWORD }
    readGatewayConfig(env)
    for (const OPS_HOST of ['0.0.0.0', '::', '10.0.0.1', '127.example', '127.0.0.1.example', 'localhost.example'])
      assert.throws(
        () => readGatewayConfig({ ...env, OPS_HOST }),
        ({ message }: Error) => message.includes('OPS_PASSWORD') && !message.includes(OPS_PASSWORD),
      )
  }
  readGatewayConfig({ ...complete, OPS_HOST: '0.0.0.0', OPS_PASSWORD: 'twelve chars' })
})

test('a wait that leaves no time to redeem its ticket is refused', () => {
  const limits = (waitMs: number) => ({ ...complete, LOGIN_WAIT_MS: String(waitMs), TICKET_TTL_MS: '8000' })
  for (const waitMs of [5_001, 8_000, 9_000]) {
    assert.throws(() => readGatewayConfig(limits(waitMs)), /LOGIN_WAIT_MS.*3000 ms.*TICKET_TTL_MS/)
  }
  readGatewayConfig(limits(5_000))
})

test('settings that contradict each other are named together, with all that is wrong by itself', () => {
  const contradictory = { LOGIN_WAIT_MS: '300000', TRUST_PROXY: 'proxy', OPS_HOST: '0.0.0.0' }
  for (const wrong of [contradictory, { ...contradictory, PORT: 'none' }]) {
    assert.throws(
      () => readGatewayConfig({ ...complete, ...wrong }),
      ({ message }: Error) => Object.keys(wrong).every((name) => message.includes(name)),
    )
  }
})

/** The one line that a gateway says with this environment before it ends. */
async function refusal(env: NodeJS.ProcessEnv): Promise<string> {
  const process = startProcess({ entry: 'api/dist/main.js', env })
  assert.deepEqual(await process.exited, { code: 1, signal: null })
  const lines = process.logs.filter(({ level }) => level === undefined)
  assert.equal(lines.length, 1, process.output())
  assert.match(process.output(), /The gateway cannot start: /)
  return lines[0]?.msg ?? ''
}
