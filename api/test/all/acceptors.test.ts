// New connections: a busy event loop accepts several in each turn, and the helper leaves nothing
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Agent, get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { startProcess } from '@spillway/infra/processes/node-process'
import { until } from '@spillway/infra/processes/until'
import { type FastifyInstance, fastify } from 'fastify'
import { type TestContext, test } from 'vitest'
import { acceptorsPlugin } from '../../src/plugins/acceptors.ts'
import { clientGonePlugin, drainPlugin } from '../../src/plugins/connections.ts'
import { atOnce } from '../client.ts'
import { openSystem } from '../system.ts'

const CONNECTIONS = 300
const TURN_MS = 10
const BACKLOG = 1_024
/** That accept a connection each in a turn, before more do. */
const HANDLES = 64
/** More than Node asks for by itself. */
const IN_BACKLOG = 600
const DEBUG = 20
/** Longer than Fastify waits for a hook here. */
const SLOW_MS = 4_000
const node = process.execPath

/** Asks over connections of its own, all at once, and ends when all are answered. */
const CLIENT = `const [, port, count] = process.argv
let left = Number(count)
for (let n = 0; n < Number(count); n++) {
  const socket = require('node:net').connect(port, '127.0.0.1')
  socket.write('GET / HTTP/1.1\\r\\nhost: test\\r\\n\\r\\n')
  socket.once('data', () => --left || process.exit())
}`

test('a busy server accepts several new connections in a turn of its event loop', async (t) => {
  const { port } = await listening(t)
  async function turnsFor(connections: number): Promise<number> {
    const client = spawn(node, ['-e', CLIENT, String(port), String(connections)])
    let isOver = false
    const end = once(client, 'exit').then(([code]) => {
      isOver = true
      return code
    })
    let turns = 0
    for (; !isOver; turns++) {
      const startMs = performance.now()
      while (performance.now() - startMs < TURN_MS);
      await nextTurn()
    }
    assert.equal(await end, 0)
    return turns
  }
  // Turns pass until the client has started, too; in the first moments there are no handles.
  await until(async () => (await turnsFor(CONNECTIONS)) - (await turnsFor(1)) < CONNECTIONS / 2, { timeoutMs: 60_000 })
})

test('no connection is lost while the handles are made', async (t) => {
  for (let round = 0; round < 5; round++) {
    const { port, log } = await listening(t)
    do await atOnce(20, () => ask(port))
    while (log.length === 0)
  }
})

test('the system goes on holding as many connections as it was asked to', async (t) => {
  const limit = '/proc/sys/net/core/somaxconn'
  if (!existsSync(limit) || Number(readFileSync(limit, 'utf8')) < BACKLOG) return t.skip('this system allows no more')
  const { port, log } = await listening(t)
  await until(() => log[0]?.msg === 'several connections are accepted in a turn')
  // Counted by another process, while nothing is accepted here.
  const program = `let left = ${IN_BACKLOG}
    for (let n = 0; n < ${IN_BACKLOG}; n++) require('node:net').connect(${port}, '127.0.0.1', () => --left || process.exit())`
  const { status } = spawnSync(node, ['-e', program], { timeout: 60_000 })
  assert.equal(status, 0)
})

test('after a turn in which every handle accepts, more of them do, until it is quiet', async (t) => {
  const { app, port, log } = await listening(t, { quietMs: 200 })
  const perTurn: number[] = []
  app.server.on('connection', () => {
    if (perTurn.at(-1) === 0) setImmediate(() => perTurn.push(0))
    perTurn.push((perTurn.pop() ?? 0) + 1)
  })
  for (const lines of [1, 2]) {
    await until(() => log.length === lines)
    perTurn.splice(0, perTurn.length, 0)
    // They wait in the backlog, while nothing is accepted here.
    const connects = `require('node:net').connect(${port}, '127.0.0.1', () => --left || process.exit())`
    const program = `let left = ${CONNECTIONS}; for (let n = 0; n < ${CONNECTIONS}; n++) ${connects}`
    assert.equal(spawnSync(node, ['-e', program], { timeout: 60_000 }).status, 0)
    await until(() => perTurn.reduce((sum, accepted) => sum + accepted) === CONNECTIONS)
    const [first = 0, ...later] = perTurn
    assert.ok(first <= HANDLES && Math.max(...later) > HANDLES, String(perTurn))
  }
  await app.close()
  assert.ok(log.every(({ level }) => level === DEBUG))
})

test('on localhost it listens and closes as everywhere', async (t) => {
  const { app, port, log } = await listening(t, { host: 'localhost' })
  await until(() => log[0]?.msg === 'several connections are accepted in a turn')
  assert.equal(await ask(port), 200)
  await app.close()
  await assert.rejects(ask(port), { code: 'ECONNREFUSED' })
})

test('a server that is closed before its handles have come ends the helper, and listens no more', async (t) => {
  const helper = await standIn(t, `echo $$ > "$0.pid"; exec sleep 600`)
  const { app, port } = await listening(t)
  const pid = await until(() => Number(helper.read('pid')))
  await app.close()
  assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
  await assert.rejects(ask(port), { code: 'ECONNREFUSED' })
})

test('a server that is closed as soon as it listens, time and again, leaves nothing behind', async (t) => {
  for (let round = 0; round < 20; round++) {
    const { app, port, log } = await listening(t)
    await new Promise((resolve) => setTimeout(resolve, 5 * round))
    await app.close()
    await assert.rejects(ask(port), { code: 'ECONNREFUSED' })
    assert.ok(log.every(({ level }) => level === DEBUG))
  }
})

test('connections of every handle end with the server, idle or in use, however long their requests take', async (t) => {
  const { app, port, log } = await listening(t)
  await until(() => log[0]?.msg === 'several connections are accepted in a turn')
  const agent = new Agent({ keepAlive: true })
  t.onTestFinished(() => agent.destroy())
  const slow = Array.from({ length: 50 }, () => ask(port, '/slow', agent))
  await atOnce(50, () => ask(port, '/', agent))
  await app.close()
  assert.deepEqual(new Set(await Promise.all(slow)), new Set([200]))
})

for (const { what, text } of [
  { what: 'cannot be started', text: undefined },
  { what: 'ends at once', text: 'exit 3' },
]) {
  test(`if the helper ${what} there is a warning, and connections are accepted all the same`, async (t) => {
    await standIn(t, text)
    const { app, port, log } = await listening(t)
    assert.equal((await until(() => log[0])).msg, 'fewer connections are accepted in a turn')
    assert.equal(await ask(port), 200)
    await app.close()
    assert.equal(log.length, 1)
  })
}

test('the helper gets nothing of the environment, and ends with a gateway that is killed', async (t) => {
  const system = await openSystem(t)
  const helper = await script(t, `env > "$0.env"; echo $$ > "$0.pid"; kill -STOP $$; exec "${node}" "$@"`)
  const stand = `process.execPath = ${JSON.stringify(helper.path)}`
  const gateway = startProcess({
    entry: 'api/dist/main.js',
    nodeArgs: ['--import', `data:text/javascript,${encodeURIComponent(stand)}`],
    env: system.environment,
  })
  t.onTestFinished(() => gateway.close())
  const { url } = await gateway.waitForLog(({ msg }) => msg === 'gateway listening')
  const pid = await until(() => Number(helper.read('pid')))
  assert.doesNotMatch(helper.read('env'), /SPILLWAY|URL/)
  await gateway.close()
  process.kill(pid, 'SIGCONT')
  await until(() => !existsSync(`/proc/${pid}`))
  await assert.rejects(ask(Number(new URL(String(url)).port)), { code: 'ECONNREFUSED' })
})

interface Listening {
  app: FastifyInstance
  port: number
  log: { level: number; msg: string }[]
}

async function listening(t: TestContext, { host = '127.0.0.1', quietMs = 60_000 } = {}): Promise<Listening> {
  const log: Listening['log'] = []
  const stream = {
    write(line: string) {
      const { level, msg } = JSON.parse(line)
      if (msg.includes('in a turn')) log.push({ level, msg })
    },
  }
  const app = fastify({ logger: { level: 'debug', stream }, forceCloseConnections: 'idle', pluginTimeout: SLOW_MS / 2 })
  await app.register(clientGonePlugin)
  await app.register(drainPlugin, { graceMs: 5_000, isDraining: () => false })
  app.get('/', async () => 'here')
  app.get('/slow', async () => new Promise((resolve) => setTimeout(resolve, SLOW_MS, 'here')))
  await app.register(acceptorsPlugin, { backlog: BACKLOG, quietMs })
  t.onTestFinished(() => app.close())
  const url = await app.listen({ host, port: 0, backlog: BACKLOG })
  return { app, port: Number(new URL(url).port), log }
}

/** Resolves with the status of the answer. */
async function ask(port: number, path = '/', agent: Agent | false = false): Promise<number | undefined> {
  const [response] = await once(get({ host: '127.0.0.1', port, path, agent }), 'response')
  response.resume()
  return response.statusCode
}

/** A shell script in place of Node's program for what this process starts; without it, nothing */
async function standIn(t: TestContext, text?: string): Promise<Script> {
  const made = await script(t, text)
  process.execPath = made.path
  t.onTestFinished(() => {
    process.execPath = node
  })
  return made
}

interface Script {
  path: string
  /** The content of a file beside it. */
  read(what: string): string
}

async function script(t: TestContext, text?: string): Promise<Script> {
  const dir = await mkdtemp(join(tmpdir(), 'acceptors-'))
  t.onTestFinished(() => rm(dir, { recursive: true }))
  const path = join(dir, 'node')
  if (text !== undefined) await writeFile(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  return { path, read: (what) => readFileSync(`${path}.${what}`, 'utf8') }
}
