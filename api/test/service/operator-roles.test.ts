// Operators by name and by a proxy: who is let in, and what each role may do, route by route.
import assert from 'node:assert/strict'
import { subscribe } from 'node:diagnostics_channel'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { until } from '@spillway/infra/processes/until'
import type { FastifyInstance, RouteOptions } from 'fastify'
import { afterAll, test } from 'vitest'
import { NamedOperators, newOperator } from '../../src/ops/named.ts'
import { atOnce, fetchPatiently } from '../client.ts'
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

const basic = (name: string, password = tokens.get(name) ?? 'none') => ({
  authorization: `Basic ${btoa(`${name}:${password}`)}`,
})
const shared = { OPS_USER: 'shared', OPS_PASSWORD: 'the pass phrase of shared' }
const anna = { 'x-forwarded-user': 'anna', 'x-forwarded-groups': 'everyone, sre' }

const system = await openSystem()
await system.worker()
const file = join(await scratchDir({ onTestFinished: afterAll }), 'operators')

const tokens = new Map<string, string>()
/** A line of the file of operators. */
function lineOf(name: string, role: string): string {
  const { token, line } = newOperator(name, role) ?? assert.fail(`${name} cannot be ${role}`)
  tokens.set(name, token)
  return line
}
await writeFile(file, ['viewer', 'support', 'admin'].map((role) => lineOf(role, role)).join('\n'))
const gateway = await system.gateway({ ...shared, OPS_OPERATORS_FILE: file })

async function ask(path: string, headers: Record<string, string> = {}, method = 'GET', from = gateway.opsUrl) {
  const response = await fetchPatiently(from + path, { method, headers })
  const text = await response.text()
  const code =
    text !== '' && response.headers.get('content-type')?.includes('problem') ? JSON.parse(text).code : undefined
  return { status: response.status, code, text }
}
const PAUSE = '/queues/api/queues/passwords/pause'
const RESUME = '/queues/api/queues/passwords/resume'

test('a viewer changes nothing, support no more than its routes, on every route that there is', async () => {
  const routes = routesOf(gateway.opsUrl).filter(({ url }) => !['/metrics', '/healthz'].includes(url))
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
  const nobody = { email: 'nobody@example.test', password: 'a passphrase' }
  await until(async () => (await gateway.api.login(nobody)).status === 401)
  assert.deepEqual((await ask(PAUSE, basic('viewer'), 'PUT')).code, 'role_required')
  assert.equal((await ask(PAUSE, basic('support'), 'PUT')).status, 200)
  assert.equal((await ask(RESUME, basic('admin'), 'PUT')).status, 200)
  for (const path of ['empty', 'obliterate', 'concurrency', 'rate-limit', 'clean/failed'])
    assert.equal((await ask(`/queues/api/queues/passwords/${path}`, basic('admin'), 'PUT')).status, 405, path)
  const completed = '/queues/api/queues?activeQueue=passwords&status=completed'
  const done = await until(async () => JSON.parse((await ask(completed, basic('admin'))).text).queues[0].jobs[0])
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

test('the board offers a viewer no changes', async () => {
  const shown = async (name: string) => JSON.parse((await ask('/queues/api/queues', basic(name))).text).queues[0]
  const states = await Promise.all(['viewer', 'support'].map(shown))
  assert.deepEqual(
    states.map(({ readOnlyMode, allowRetries }) => [readOnlyMode, allowRetries]),
    [
      [true, false],
      [false, true],
    ],
  )
})

test('a hundred wrong tokens at once are ten guesses, of known and unknown names alike', async () => {
  const own = await system.gateway({ OPS_OPERATORS_FILE: file })
  const guess = (n: number) =>
    ask('/live.json', basic(n % 2 === 0 ? 'admin' : 'nobody', `guess ${n}`), 'GET', own.opsUrl)
  const statuses = (await atOnce(100, guess)).map(({ status }) => status)
  assert.equal(statuses.filter((status) => status === 401).length, 10)
  assert.equal(statuses.filter((status) => status === 429).length, 90)
  assert.equal((await ask('/live.json', basic('admin'), 'GET', own.opsUrl)).status, 429)
  assert.match((await ask('/metrics', {}, 'GET', own.opsUrl)).text, /^spillway_operator_login_failures_total 10$/m)
})

test('a change of the file counts at once, a malformed line for nothing, and a lost file changes nothing', async () => {
  const changing = `${file}.changing`
  const [berta, carl] = [lineOf('berta', 'admin'), lineOf('carl', 'admin')]
  await writeFile(changing, `# operators\n\n${berta}\n${carl}\n`)
  const own = await system.gateway({ OPS_OPERATORS_FILE: changing })
  const resume = (name: string) => ask(RESUME, basic(name), 'PUT', own.opsUrl)
  const statuses = async () => [(await resume('berta')).status, (await resume('carl')).status]
  assert.deepEqual(await statuses(), [200, 200])
  await writeFile(changing, `${berta.replace(':admin:', ':viewer:')}\n${carl}\n`)
  assert.deepEqual(await statuses(), [403, 200])
  const malformed = [
    berta.replace(':admin:', ':owner:'),
    berta.slice(0, -1),
    `x ${berta}`,
    'berta:admin:',
    'berta:admin',
  ]
  await writeFile(changing, `${[...malformed, carl, carl.replace(':admin:', ':viewer:')].join('\n')}\n`)
  assert.deepEqual(await statuses(), [401, 200])
  await rm(changing)
  assert.deepEqual(await statuses(), [401, 200])
})

test('the lines of a file that count for nothing are named, without what they hold', async () => {
  const malformed = `${file}.malformed`
  const line = lineOf('dora', 'admin')
  await writeFile(malformed, `# operators\n${line}\n${line}\ndora:owner:secret\n`)
  const said: string[] = []
  const log = { error: (_fields: unknown, text?: string) => void said.push(text ?? '') }
  const operators = new NamedOperators(malformed, log)
  await operators.start()
  await operators.refresh()
  assert.deepEqual(said, [
    'OPS_OPERATORS_FILE: line 3 names an operator for the second time; this line counts for nothing',
    'OPS_OPERATORS_FILE: line 4 is not name:role:digest, with a role of viewer, support, admin; this line counts for nothing',
  ])
  assert.deepEqual(operators.find('dora', tokens.get('dora') ?? ''), { name: 'dora', role: 'admin' })
  for (const [name, token] of [
    ['dora', ''],
    ['dora', 'secret'],
    ['nobody', tokens.get('dora') ?? ''],
  ] as const)
    assert.equal(operators.find(name, token), undefined)
  await writeFile(malformed, `\ufeff${line}\n`)
  await operators.refresh()
  assert.notEqual(operators.find('dora', tokens.get('dora') ?? ''), undefined)
  await writeFile(malformed, line, 'utf16le')
  await assert.rejects(system.gateway({ OPS_OPERATORS_FILE: malformed }), /^Error: OPS_OPERATORS_FILE is not UTF-8$/)
  await assert.rejects(
    system.gateway({ OPS_OPERATORS_FILE: `${file}.missing` }),
    /^Error: OPS_OPERATORS_FILE cannot be read: ENOENT/,
  )
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

test('a proxy shows its secret, and sends secret, names and groups in UTF-8, in any normal form', async () => {
  const secret = 'the secret: Schlüssel'
  const proxy = { OPS_PROXIES: '127.0.0.0/8', OPS_GROUPS: 'Führung:admin', OPS_PROXY_SECRET: secret }
  const { opsUrl } = await system.gateway(proxy)
  const latin1 = (text: string) => Buffer.from(text.normalize('NFD')).toString('latin1')
  const as = (name: string, further: Record<string, string>) =>
    ask(
      RESUME,
      { 'x-forwarded-user': latin1(name), 'x-forwarded-groups': latin1('Führung'), ...further },
      'PUT',
      opsUrl,
    )
  const shown = { 'x-ops-proxy-secret': latin1(secret) }
  assert.equal((await as('Jürgen Groß', {})).status, 401)
  assert.equal((await as('Jürgen Groß', { 'x-ops-proxy-secret': 'another secret of it' })).status, 401)
  assert.equal((await as('Jürgen Groß', shown)).status, 200)
  assert.equal((await as('x'.repeat(201), shown)).status, 400)
  const where = { event: 'resume_queue', operator: 'Jürgen Groß' }
  await until(() => system.database.auditEvent.findFirst({ where }), { what: 'the name in the audit' })
})
