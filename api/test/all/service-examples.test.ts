// The examples of the service API in other languages: each is started, and its users log in.
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { readMetric } from '@spillway/infra/harness/api-client'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { freePort } from '@spillway/infra/processes/port'
import { onPath } from '@spillway/infra/processes/run'
import { until } from '@spillway/infra/processes/until'
import { type TestContext, test } from 'vitest'
import { letIn } from '../client.ts'
import { pythonWith } from '../python.ts'
import { ofFile, openSystem, whileFrozen } from '../system.ts'

const PACKAGES = ['django==5.2.19', 'flask==3.1.3']
const run = promisify(execFile)
const examplesDir = fileURLToPath(new URL('../../examples/', import.meta.url))
const pythonDir = join(examplesDir, 'python')

const python = await pythonWith(PACKAGES)
const withoutPython = python === undefined ? `there is no python3 with venv, or no ${PACKAGES.join(', ')}` : false
const go = onPath(['go'])

/** A test adds several between two readings of the queue, which count until the next reading. */
const MAX_OUTSTANDING = 20
const key = randomBytes(32).toString('base64')
const dir = await scratchDir(ofFile)
const system = await openSystem()
const worker = await system.worker()
// A short wait, so that tickets are redeemed as well.
const service = { SERVICE_KEYS: `example:${key}`, SERVICE_PORT: '0', LOGIN_WAIT_MS: '300' }
const gateway = await system.gateway({ ...service, MAX_OUTSTANDING: String(MAX_OUTSTANDING) })
const { PATH, HOME } = process.env
const env = {
  PATH,
  HOME,
  SPILLWAY_URL: gateway.serviceUrl,
  SPILLWAY_KEY: key,
  DATABASE_FILE: join(dir, 'users.sqlite3'),
}

/** Starts an application and gives its address, once it answers. */
async function started(t: Pick<TestContext, 'onTestFinished'>, command: string, args: string[]): Promise<string> {
  const address = `127.0.0.1:${await freePort()}`
  const child = spawn(command, [...args, address], { cwd: pythonDir, env, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (text) => (said += text))
  t.onTestFinished(() => ended(child))
  const url = `http://${address}`
  await until(
    async () => {
      assert.equal(child.exitCode, null, said)
      return fetch(url).then(
        () => true,
        () => false,
      )
    },
    { what: `an answer of ${args.join(' ')}`, timeoutMs: 60_000 },
  )
  return url
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'close')
}

const post = (url: string, username: string, password: string) =>
  fetch(url, { method: 'POST', body: new URLSearchParams({ username, password }) })

/** Users register and log in; the wrong password, and an unknown name, do not. */
async function assertLogsIn(url: string): Promise<void> {
  const password = 'pässword ✓'
  assert.equal((await post(`${url}/register`, 'ada', password)).status, 201)
  const right = await post(`${url}/login`, 'ada', password)
  assert.deepEqual([right.status, await right.json()], [200, { username: 'ada' }])
  assert.equal((await post(`${url}/login`, 'ada', 'wrong')).status, 401)
  assert.equal((await post(`${url}/login`, 'nobody', password)).status, 401)
  await assertFollowsTicket(url, password)
  await assertPassesOnBusy(url, password)
}

/** A login that takes longer than the gateway holds it is answered all the same. */
async function assertFollowsTicket(url: string, password: string): Promise<void> {
  const [login] = await whileFrozen(worker, async () => {
    const before = await ticketsPending()
    const login = post(`${url}/login`, 'ada', password)
    let early: number | undefined
    void login.then(({ status }) => (early = status))
    await until(
      async () => {
        assert.equal(early, undefined, 'answered while no worker runs')
        return (await ticketsPending()) > before
      },
      { what: 'a ticket redeemed too early' },
    )
    return [login]
  })
  assert.equal((await login).status, 200)
}

/** A login that is refused is told when to come back. */
async function assertPassesOnBusy(url: string, password: string): Promise<void> {
  const tickets: string[] = []
  await whileFrozen(worker, async () => {
    await letIn(MAX_OUTSTANDING, async () => {
      const answer = await ask('/v1/passwords/hash', { password: 'x' })
      const { ticket }: { ticket?: string } = JSON.parse(await answer.text())
      if (ticket !== undefined) tickets.push(ticket)
      return answer
    })
    const { status, headers: told } = await post(`${url}/login`, 'ada', password)
    assert.deepEqual([status, Number(told.get('retry-after')) >= 1], [503, true])
  })
  // A ticket that nobody redeems in time is passed over, and keeps its place in the queue.
  for (const ticket of tickets)
    await until(async () => (await ask('/v1/tickets/redeem', { ticket })).status !== 202, { what: 'a hash' })
  await until(async () => (await post(`${url}/login`, 'ada', password)).status === 200, { what: 'an empty queue' })
}

function ask(path: string, body: object): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', prefer: 'respond-async' }
  return fetch(gateway.serviceUrl + path, { method: 'POST', headers, body: JSON.stringify(body) })
}

/** How many redemptions were answered that the ticket is still pending. */
const ticketsPending = () => readMetric(gateway.opsUrl, 'spillway_tickets_total', 'event="pending"')

test.skipIf(withoutPython)('a Flask application', async (t) => {
  await assertLogsIn(await started(t, python ?? '', ['flask_app.py']))
})

test.skipIf(withoutPython)('a Django application, with its users of before', async (t) => {
  const url = await started(t, python ?? '', ['django_app.py'])
  await assertLogsIn(url)
  const users = { pbkdf2: 'PBKDF2', scrypt: 'Scrypt' }
  for (const [name, hasher] of Object.entries(users)) {
    // As Django itself stored them.
    const program = `
import sqlite3, sys
from django.conf import settings
settings.configure()
from django.contrib.auth.hashers import ${hasher}PasswordHasher as Hasher
hash = Hasher().encode("old password", "saltsaltsaltsalt")
with sqlite3.connect(sys.argv[1]) as database:
    database.execute("""INSERT INTO auth_user (username, password, is_superuser, is_staff, is_active, date_joined,
      first_name, last_name, email) VALUES (?, ?, 0, 0, 1, '2026-01-01', '', '', '')""", (sys.argv[2], hash))`
    await run(python ?? '', ['-c', program, env.DATABASE_FILE ?? '', name], { env })
    assert.equal((await post(`${url}/login`, name, 'old passwords')).status, 401, name)
    assert.equal((await storedHash(name)).startsWith('argon2$'), false, name)
    for (let n = 0; n < 2; n++) assert.equal((await post(`${url}/login`, name, 'old password')).status, 200, name)
    assert.match(await storedHash(name), /^argon2\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  }
  await assertRefusesFormerPassword(url)
})

/** The old password of a login that waits opens no session once it is changed, the new one does */
async function assertRefusesFormerPassword(url: string): Promise<void> {
  for (const name of ['eve', 'bob']) assert.equal((await post(`${url}/register`, name, `of ${name}`)).status, 201)
  const [former] = await whileFrozen(worker, async () => {
    const before = await ticketsPending()
    const former = post(`${url}/login`, 'eve', 'of eve')
    await until(async () => (await ticketsPending()) > before, { what: 'a login that waits' })
    const program = `
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as database:
    database.execute("UPDATE auth_user SET password = (SELECT password FROM auth_user WHERE username = 'bob') WHERE username = 'eve'")`
    await run(python ?? '', ['-c', program, env.DATABASE_FILE ?? ''], { env })
    return [former]
  })
  assert.equal((await former).status, 401)
  assert.equal((await post(`${url}/login`, 'eve', 'of bob')).status, 200)
}

/** What Django keeps of a user. */
async function storedHash(name: string): Promise<string> {
  const program = `
import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("SELECT password FROM auth_user WHERE username = ?", [sys.argv[2]]).fetchone()[0])`
  const { stdout } = await run(python ?? '', ['-c', program, env.DATABASE_FILE ?? '', name], { env })
  return stdout.trim()
}

test.skipIf(go === undefined && 'there is no Go')('an application in Go', async (t) => {
  const program = join(dir, 'login')
  const offline = { ...env, GOTOOLCHAIN: 'local', CGO_ENABLED: '0', GOFLAGS: '-mod=mod', GOPROXY: 'off' }
  await run(go ?? '', ['build', '-o', program, '.'], { cwd: join(examplesDir, 'go'), env: offline })
  await assertLogsIn(await started(t, program, []))
})
