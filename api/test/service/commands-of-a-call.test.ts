// The Redis commands and SQL statements of each call: infra/sizing/REDIS.md, counted for real.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { connect as connectTo, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { until } from '@spillway/infra/processes/until'
import { monitorRedis } from '@spillway/infra/rig/redis-monitor'
import { limitsOf } from '@spillway/infra/rig/spillway'
import { afterAll, test } from 'vitest'
import { expect, newCredentials, respondAsync } from '../client.ts'
import { openSystem } from '../system.ts'

const system = await openSystem()
const statements = await countStatements(system.namespace.databaseUrl)
const monitor = await monitorRedis(system.namespace.redisUrl)
afterAll(async () => {
  monitor.close()
  await system.close()
  await statements.close()
})
await system.worker({ SPILLWAY_TEST_HASHES: 'true' })
// Beside calls it would write now and then.
const { api } = await system.gateway({ ...limitsOf(1_000), DATABASE_URL: statements.url, AUDIT_RETENTION_DAYS: '0' })

/** What processes do without calls; an idle worker also fetches, a busy one with a job's end */
const BESIDE_CALLS = [
  ...['bzpopmin', 'ping', 'fetch', 'capacity', 'gateways'],
  ...['passwords:stalled', 'passwords:completed', 'passwords:failed'],
]
/** How long nothing more must come after what was expected. */
const QUIET_MS = 300
const ATTEMPTS = 20

const calls: Record<string, () => Promise<void>> = {
  async login() {
    expect(200, await api.login(account))
  },
  async 'login of a known device'() {
    expect(200, await api.login(account, device))
  },
  async 'wrong password'() {
    expect(401, await api.login({ ...account, password: 'another password' }))
  },
  ticket: newTicket,
  async 'its redeeming'() {
    expect(200, await api.redeem(ticket))
  },
  async refresh() {
    expect(200, await api.refresh(tokens.refreshToken))
  },
  async registration() {
    expect(201, await api.register(newCredentials()))
  },
}
const { account, ...tokens } = await api.signedIn()
const device = { headers: { 'spillway-device': tokens.deviceToken ?? '' } }
let ticket = ''
async function newTicket(): Promise<void> {
  ticket = String(expect(202, await api.login(account, respondAsync)).ticket)
}
/** What a call needs anew for each attempt: a ticket can be redeemed once. */
const preparations: Record<string, () => Promise<void>> = { 'its redeeming': newTicket }

const page = readFileSync(new URL('../../../infra/sizing/REDIS.md', import.meta.url), 'utf8')
const listed = new Map(
  Array.from(page.matchAll(/^\| (\S[^|]*?) \| ([^|]*?) \| (\d+) \|$/gm), ([, call = '', commands = '', sql]) => [
    call,
    { commands: Array.from(commands.matchAll(/`([^`]+)`/g), ([, name]) => name).toSorted(), sql: Number(sql) },
  ]),
)

for (const [name, call] of Object.entries(calls)) {
  test(`${name}: the page lists its Redis commands and SQL statements`, async () => {
    const expected = listed.get(name)
    let attempts = 0
    // On a busy machine a gateway asks for a verdict that is late: the call is made again then.
    const counted = await until(async () => {
      await preparations[name]?.()
      await sleep(QUIET_MS)
      const from = monitor.commands.length
      const before = statements.count()
      const made = () => commandsSince(from)
      await call()
      await until(() => made().length >= (expected?.commands.length ?? 0))
      await sleep(QUIET_MS)
      attempts += 1
      const found = { commands: made().toSorted(), sql: statements.count() - before }
      return attempts === ATTEMPTS || isDeepStrictEqual(found, expected) ? found : undefined
    })
    assert.deepEqual(counted, expected)
  })
}

/** The commands of calls, named by the first key of what they work on. */
function commandsSince(from: number): string[] {
  const sent = monitor.commands.slice(from).filter(({ byScript, command }) => !byScript && isOurs(command))
  return sent
    .map(({ command }) => nameOf(command))
    .filter((name) => !BESIDE_CALLS.includes(name.split(' ').at(-1) ?? ''))
}

function isOurs(command: readonly string[]): boolean {
  return command.some((argument) => argument.startsWith(`${system.namespace.queuePrefix}:`))
}

function nameOf([command = '', ...args]: readonly string[]): string {
  if (command === 'bzpopmin') return command
  const isScript = command === 'eval' || command === 'evalsha'
  const keys = isScript ? Number(args[1]) : 1
  const key = (args[isScript ? 2 : 0] ?? '').slice(system.namespace.queuePrefix.length + 1)
  const [kind = '', part = ''] = key.split(':')
  if (kind === 'passwords' && UUID.test(part)) return 'job'
  if (kind === 'passwords') return (part === 'stalled' ? undefined : ofBullmq[keys]) ?? `${kind}:${part}`
  return kind === 'limit' ? `${kind}:${part}` : isScript ? kind : `${command} ${kind}`
}

const UUID = /^[\da-f]{8}-/

/** BullMQ's scripts by their number of keys. */
const ofBullmq: Record<number, string> = { 9: 'add', 11: 'fetch', 14: 'finish' }

/** A proxy to PostgreSQL that counts the statements that are executed through it. */
async function countStatements(databaseUrl: string) {
  // The types of messages that run a statement: Execute, and Query with its text.
  const types: readonly number[] = [0x45, 0x51]
  const target = new URL(databaseUrl)
  let executed = 0
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connectTo(Number(target.port), target.hostname)
    let pending = Buffer.alloc(0)
    let isStarted = false
    let isOfCall = true
    // By their names: blocked networks are read whether anybody calls or not.
    const besideCalls = new Set<string | undefined>()
    client.on('data', (bytes) => {
      pending = Buffer.concat([pending, bytes])
      // A message is its type and its length; the first has no type.
      for (;;) {
        const type = isStarted ? 1 : 0
        if (pending.length < type + 4) break
        const end = type + pending.readUInt32BE(type)
        if (pending.length < end) break
        const message = pending.subarray(0, end)
        const [first, second] = message.toString('latin1', 5).split('\0', 2)
        // Parse names a statement and has its text, Bind names a portal and its statement.
        if (isStarted && message[0] === 0x50 && message.includes('FROM blocks')) besideCalls.add(first)
        if (isStarted && message[0] === 0x42) isOfCall = !besideCalls.has(second)
        if (isStarted && isOfCall && types.includes(message[0] ?? 0)) executed += 1
        isStarted = true
        pending = pending.subarray(end)
      }
    })
    client.pipe(upstream).pipe(client)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    }
  })
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const url = new URL(databaseUrl)
  url.host = `127.0.0.1:${port}`
  return {
    url: url.href,
    count: () => executed,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
