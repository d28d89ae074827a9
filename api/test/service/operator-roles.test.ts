// Operators by name and by a proxy: who is let in, and what each role may do, route by route.
import assert from 'node:assert/strict'
import { subscribe } from 'node:diagnostics_channel'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { createPasswordsWith } from '@spillway/client/application/create-passwords'
import { until } from '@spillway/infra/processes/until'
import { scratchDir } from '@spillway/infra/rig/namespace'
import type { FastifyInstance, RouteOptions } from 'fastify'
import { afterAll, test } from 'vitest'
import { operator } from '../../../infra/accounts/src/operator.ts'
import { atOnce } from '../client.ts'
import { openSystem } from '../system.ts'

/** The servers of this process, with their routes. */
const servers: { app: FastifyInstance; routes: RouteOptions[] }[] = []
subscribe('fastify.initialization', (message) => {
  const { fastify: app } = message as { fastify: FastifyInstance }
  const routes: RouteOptions[] = []
  servers.push({ app, routes })
  app.addHook('onRoute', (route) => void routes.push(route))
})
function routesOf(opsUrl: string): RouteOptions[] {
  const isThere = ({ app }: { app: FastifyInstance }) =>
    app.server.listening &&
    app.addresses().some((at) => typeof at === 'object' && String(at.port) === new URL(opsUrl).port)
  return servers.find(isThere)?.routes ?? assert.fail('no server listens there')
}

const passwordOf = (name: string) => `the pass phrase of ${name}`
const basic = (name: string, password = passwordOf(name)) => ({ authorization: `Basic ${btoa(`${name}:${password}`)}` })
const shared = { OPS_USER: 'shared', OPS_PASSWORD: passwordOf('shared') }
const anna = { 'x-forwarded-user': 'anna', 'x-forwarded-groups': 'everyone, sre' }

const system = await openSystem()
const worker = await system.worker()
const file = join(await scratchDir({ onTestFinished: afterAll }), 'operators')
const { REDIS_URL: redis, SPILLWAY_SEAL_KEYS: sealKeys = '', QUEUE_PREFIX: queuePrefix } = system.environment
const passwords = createPasswordsWith(new URL('none:'), { redis, sealKeys, queuePrefix })
afterAll(() => passwords.close())

/** Runs `pnpm accounts operator`. */
async function add(name: string, role: string, options: { file?: string; password?: string } = {}): Promise<string> {
  const said: string[] = []
  const log = (text: string) => void said.push(text)
  const input = Readable.from([`${options.password ?? passwordOf(name)}\n`])
  const to = ['--file', options.file ?? file]
  await operator([name, '--role', role, ...to], { env: {}, passwords, log, input })
  return said.join('\n')
}
for (const role of ['viewer', 'support', 'admin']) await add(role, role)
const gateway = await system.gateway({ ...shared, OPS_OPERATORS_FILE: file })

async function ask(path: string, headers: Record<string, string> = {}, method = 'GET', from = gateway.opsUrl) {
  const response = await fetch(from + path, { method, headers })
  const text = await response.text()
  const code =
    text !== '' && response.headers.get('content-type')?.includes('problem') ? JSON.parse(text).code : undefined
  return { status: response.status, code, text }
}
const PAUSE = '/queues/api/queues/passwords/pause'
const RESUME = '/queues/api/queues/passwords/resume'

test('a viewer changes nothing, support no more than its routes, on every route that there is', async () => {
  const routes = routesOf(gateway.opsUrl).filter(({ url }) => url !== '/metrics')
  const calls = routes.flatMap(({ method, url, config }) =>
    [method].flat().map((each) => ({ method: each, path: url.replace(/:\w+|\*/g, 'x'), role: config?.role })),
  )
  const writes = calls.filter(({ method }) => !['GET', 'HEAD'].includes(method))
  assert.ok(writes.length >= 20, `${writes.length} routes change something`)
  for (const { method, path, role } of calls) {
    const refused = async (name: string) => (await ask(path, basic(name), method)).status === 403
    const isWrite = !['GET', 'HEAD'].includes(method)
    assert.equal((await ask(path, {}, method)).status, 401, `${method} ${path}`)
    const needed = role ?? (isWrite ? 'admin' : 'viewer')
    assert.equal(await refused('viewer'), needed !== 'viewer', `viewer: ${method} ${path}`)
    assert.equal(await refused('support'), needed === 'admin', `support: ${method} ${path}`)
    assert.equal(await refused('admin'), false, `admin: ${method} ${path}`)
  }
  const writesOf = (role: string | undefined) =>
    calls.filter((call) => call.role === role && !['GET', 'HEAD'].includes(call.method)).map(({ path }) => path)
  // What is looked for is in the body, and so in no log of a proxy.
  assert.deepEqual(writesOf('viewer'), ['/v1/accounts/find'])
  assert.deepEqual([...writesOf('admin'), ...writesOf(undefined)].sort(), [
    '/v1/accounts/x/delete',
    '/v1/blocks',
    '/v1/blocks/lift',
  ])
  await ask('/queues/api/queues/resume', basic('support'), 'PUT')
  const event = { event: 'delete_account', outcome: 'role_required', operator: 'support' } as const
  await until(() => system.database.auditEvent.findFirst({ where: event }), { what: 'the refusal in the audit' })
})

test('support pauses and resumes, everybody is told who it was, and nobody empties a queue', async () => {
  const { database } = system
  assert.deepEqual((await ask(PAUSE, basic('viewer'), 'PUT')).code, 'role_required')
  assert.equal((await ask(PAUSE, basic('support'), 'PUT')).status, 200)
  // Where nobody has logged in yet, and no worker verifies a password just now.
  const other = await system.gateway({ OPS_OPERATORS_FILE: file })
  for (const name of ['viewer', 'support']) assert.equal((await ask('/', basic(name), 'GET', other.opsUrl)).status, 200)
  assert.equal((await ask(RESUME, basic('admin'), 'PUT')).status, 200)
  for (const path of ['empty', 'obliterate', 'concurrency', 'rate-limit', 'clean/failed'])
    assert.equal((await ask(`/queues/api/queues/passwords/${path}`, basic('admin'), 'PUT')).status, 405, path)
  const listed = JSON.parse(
    (await ask('/queues/api/queues?activeQueue=passwords&status=completed', basic('admin'))).text,
  )
  const [done] = listed.queues[0].jobs
  for (const path of ['retry/completed', `${done.id}/retry`, `${done.id}/promote`]) {
    const refused = await ask(`/queues/api/queues/passwords/${path}`, basic('support'), 'PUT')
    assert.equal(refused.status, 409, `${path}: ${refused.text}`)
    assert.match(JSON.parse(refused.text).requestId, /^[\w-]+$/)
  }
  const events = await until(async () => {
    const where = { reason: 'passwords' }
    const found = await database.auditEvent.findMany({ where, orderBy: { id: 'desc' }, take: 3 })
    return found.length === 3 && found[0]?.event === 'resume_queue' ? found.reverse() : undefined
  })
  assert.deepEqual(
    events.map(({ event, outcome, operator }) => `${operator}: ${event} ${outcome}`),
    ['viewer: pause_queue role_required', 'support: pause_queue ok', 'admin: resume_queue ok'],
  )
})

test('the board offers a viewer no changes, and calls what has a ticket as the other pages do', async () => {
  const shown = async (name: string) => JSON.parse((await ask('/queues/api/queues', basic(name))).text).queues[0]
  const states = await Promise.all(['viewer', 'support'].map(shown))
  assert.deepEqual(
    states.map(({ readOnlyMode, allowRetries }) => [readOnlyMode, allowRetries]),
    [
      [true, false],
      [false, true],
    ],
  )
  const words = await ask('/queues/static/locales/en-US/messages.json', basic('viewer'))
  assert.equal(JSON.parse(words.text).QUEUE.STATUS.PRIORITIZED, 'In line')
})

test('a hundred wrong passwords at once are ten guesses, of known and unknown names alike', async () => {
  const own = await system.gateway({ OPS_OPERATORS_FILE: file })
  const guess = (n: number) =>
    ask('/live.json', basic(n % 2 === 0 ? 'admin' : 'nobody', `guess ${n}`), 'GET', own.opsUrl)
  const statuses = (await atOnce(100, guess)).map(({ status }) => status)
  assert.equal(statuses.filter((status) => status === 401).length, 10)
  assert.equal(statuses.filter((status) => status === 429).length, 90)
  assert.equal((await ask('/live.json', basic('admin'), 'GET', own.opsUrl)).status, 429)
  assert.match((await ask('/metrics', {}, 'GET', own.opsUrl)).text, /^spillway_operator_login_failures_total 10$/m)
})

test('a change of the file counts at once; one that cannot be read changes nothing', async () => {
  const changing = `${file}.changing`
  await add('berta', 'admin', { file: changing })
  await add('carl', 'admin', { file: changing })
  const own = await system.gateway({ OPS_OPERATORS_FILE: changing })
  const pause = async (name: string) => (await ask(RESUME, basic(name), 'PUT', own.opsUrl)).status
  assert.equal(await pause('berta'), 200)
  await add('berta', 'viewer', { file: changing })
  assert.equal(await pause('berta'), 403)
  await writeFile(changing, 'berta:owner:$argon2id$x\n')
  assert.deepEqual([await pause('berta'), await pause('carl')], [403, 200])
  await rm(changing)
  await add('carl', 'admin', { file: changing })
  assert.deepEqual([await pause('berta'), await pause('carl')], [401, 200])
})

test.each(['anna:support', 'anna:owner:$argon2id$x', 'a b:viewer:$argon2id$x', 'anna:viewer:$2b$10$x', 'anna:admin:'])(
  'a gateway refuses to start with %s, without showing it',
  async (line) => {
    const malformed = `${file}.malformed`
    await writeFile(malformed, `# operators\n\n${line}\n`)
    await assert.rejects(
      system.gateway({ OPS_OPERATORS_FILE: malformed }),
      /^Error: line 3 of OPS_OPERATORS_FILE is not/,
    )
  },
)

test.each([
  ['short', 'admin', 'too short'],
  ['common', 'admin', 'password1234'],
  ['role', 'owner', undefined],
  ['a:b', 'admin', undefined],
])('the command refuses %s', async (name, role, password) => {
  await assert.rejects(add(name, role, password === undefined ? {} : { password }), { name: 'UserError' })
})

test('nobody else names an operator, whatever the headers say', async () => {
  const untrusted = await system.gateway({
    ...{ OPS_OPERATORS_FILE: file, OPS_PROXIES: '192.0.2.1,2001:db8::/32', OPS_GROUPS: 'sre:admin' },
    TRUST_PROXY: '127.0.0.1',
  })
  const forged = { ...anna, 'x-forwarded-for': '192.0.2.1', 'x-real-ip': '192.0.2.1', forwarded: 'for=192.0.2.1' }
  for (const own of [gateway, untrusted]) {
    assert.equal((await ask('/live.json', forged, 'GET', own.opsUrl)).status, 401)
    assert.equal((await ask(PAUSE, { ...basic('viewer'), ...forged }, 'PUT', own.opsUrl)).code, 'role_required')
  }
})

test('a trusted proxy names the operator, whose highest group counts', async () => {
  const OPS_GROUPS = 'sre:admin, /help/desk:support,everyone:viewer'
  const { opsUrl } = await system.gateway({ OPS_PROXIES: '127.0.0.0/8', OPS_GROUPS })
  const status = async (groups: string | undefined, method: string, path: string) => {
    const headers = { 'x-forwarded-user': 'anna', ...(groups === undefined ? {} : { 'x-forwarded-groups': groups }) }
    return (await ask(path, headers, method, opsUrl)).status
  }
  assert.equal(await status('everyone,sre', 'PUT', RESUME), 200)
  assert.equal(await status('/help/desk', 'PUT', RESUME), 200)
  assert.equal(await status('everyone', 'PUT', RESUME), 403)
  assert.equal(await status('everyone', 'GET', '/live.json'), 200)
  for (const groups of [undefined, '', 'sre:admin', 'SRE', 'admin', 'x sre'])
    assert.equal(await status(groups, 'GET', '/live.json'), 403, String(groups))
  assert.equal((await ask('/live.json', { 'x-forwarded-groups': 'sre' }, 'GET', opsUrl)).status, 401)
})

test('while no worker is alive, whoever is logged in stays so, and OPS_PASSWORD logs in', async () => {
  await add('nina', 'admin')
  const [own, fresh] = [
    await system.gateway({ ...shared, OPS_OPERATORS_FILE: file }),
    await system.gateway({ OPS_OPERATORS_FILE: file }),
  ]
  const status = async (name: string) => (await ask('/live.json', basic(name), 'GET', own.opsUrl)).status
  assert.equal(await status('support'), 200)
  assert.deepEqual(await worker.stop(), { code: 0, signal: null })
  assert.deepEqual([await status('support'), await status('shared')], [200, 200])
  // More than a lock-out takes: what nobody verified is no failure.
  const unverified = await atOnce(9, () => ask('/live.json', basic('nina'), 'GET', own.opsUrl))
  assert.deepEqual([...new Set(unverified.map(({ code }) => code))], ['operator_unverified'])
  // A Redis server that answers with something else for what it was given lets nobody in.
  assert.equal(await status('admin'), 200)
  const shown = await system.redis.keys(`${queuePrefix}:operator:*`)
  for (const key of shown) await system.redis.set(key, 'x'.repeat(22), 'KEEPTTL')
  assert.ok(shown.length >= 3)
  assert.equal((await ask('/live.json', basic('admin'), 'GET', fresh.opsUrl)).code, 'operator_unverified')
  const others = await atOnce(9, (n) => ask('/live.json', basic('admin', `guess ${n}`), 'GET', own.opsUrl))
  assert.deepEqual([...new Set(others.map(({ status: each }) => each))], [503])
  assert.deepEqual([await status('support'), await status('shared')], [200, 200])
})
