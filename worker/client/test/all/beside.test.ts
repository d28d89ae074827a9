// An application's passwords without Redis: hashed in a process beside it, which may be killed.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer, get } from 'node:http'
import { createRequire } from 'node:module'
import { getPriority } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createPasswordsWith } from '@spillway/client/application/create-passwords'
import { PasswordsError } from '@spillway/client/application/passwords-error'
import type { Passwords, PasswordsOptions } from '@spillway/client/application/types'
import { withResolvers } from '@spillway/common/within'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { until } from '@spillway/infra/processes/until'
import { type TestContext, test } from 'vitest'
import { bcryptHash, besideProgram, besides, noProgram, rejectsWith, silent } from '../passwords.ts'

const run = promisify(execFile)

const cheap = { algorithm: 'argon2id', memoryKib: 64, time: 1 } as const
/** The same at a cost that takes seconds: no password is known to match. */
const SECONDS = bcryptHash.replace('$05$', '$15$')
/** A process may take long to start on a busy machine. */
const WAIT_MS = 100_000

function passwordsOf(t: TestContext, options: PasswordsOptions = {}, program = besideProgram): Passwords {
  const passwords = createPasswordsWith(program, { policy: cheap, waitMs: WAIT_MS, log: silent, ...options })
  t.onTestFinished(() => passwords.close())
  return passwords
}

async function readyPasswords(...parts: Parameters<typeof passwordsOf>): Promise<Passwords> {
  const passwords = passwordsOf(...parts)
  await until(() => passwords.capacity().known, { timeoutMs: WAIT_MS, what: 'a process that hashes' })
  return passwords
}

test('which engine hashes is logged once, also when another process goes on', async (t) => {
  const said: string[] = []
  const log = { ...silent, info: (_: object, message: string) => void said.push(message) }
  const passwords = passwordsOf(t, { log })
  await passwords.hash('x')
  await until(() => said.length > 0, { what: 'the engine, which is used a moment later' })
  for (const pid of await besides()) process.kill(pid, 'SIGKILL')
  await until(() => passwords.hash('x').then(Boolean, () => false), { what: 'another process' })
  assert.equal(said.length, 1)
  assert.match(said[0] ?? '', /^hashing with (worker\/engine|@node-rs\/argon2 and @node-rs\/bcrypt, one at a time[;,])/)
})

test('one process hashes, with the share of a core that the application has, and with what the processors allow', async (t) => {
  const passwords = await readyPasswords(t, { concurrency: 1 })
  await Promise.all(Array.from({ length: 8 }, () => passwords.hash('x')))
  const [pid, ...others] = await besides()
  assert.deepEqual(others, [])
  assert.equal(getPriority(pid), getPriority())
  const { by, workers, slots } = passwords.capacity()
  assert.deepEqual([by, workers], ['process', 1])
  assert.ok(slots >= 1)
})

test('the process is given nothing of the application but what the runtime reads', async (t) => {
  process.env.DATABASE_URL = 'hush'
  process.env.OTEL_EXPORTER_OTLP_HEADERS = 'authorization=hush'
  process.env.NODE_OPTIONS = '--title=hush'
  t.onTestFinished(() => {
    delete process.env.DATABASE_URL
    delete process.env.OTEL_EXPORTER_OTLP_HEADERS
    delete process.env.NODE_OPTIONS
  })
  await readyPasswords(t)
  const [pid] = await besides()
  const given = await readFile(`/proc/${pid}/environ`, 'utf8')
  assert.match(given, /(^|\0)PATH=/)
  assert.doesNotMatch(given, /hush/)
})

test('a login is refused before its user is looked up, and taken back when its client leaves', async (t) => {
  const passwords = await readyPasswords(t, { concurrency: 1, maxOutstanding: 3 })
  let lookedUp = 0
  const server = createServer(async (_, response) => {
    try {
      const call = await passwords.admit(response)
      lookedUp += 1
      await passwords.verify('x', SECONDS, call)
      response.end()
    } catch (error) {
      response.statusCode = error instanceof PasswordsError ? error.statusCode : 500
      response.end()
    }
  })
  t.onTestFinished(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const clients = [1, 2, 3].map(() => {
    const client = get({ port, agent: false })
    client.on('error', () => undefined)
    return client
  })
  await until(() => lookedUp === 3, { what: 'three logins' })
  const { promise, resolve } = withResolvers<number>()
  get({ port, agent: false }, (response) => resolve(response.resume().statusCode ?? 0))
  assert.equal(await promise, 503)
  assert.equal(lookedUp, 3)
  for (const client of clients) client.destroy()
  await until(() => passwords.capacity().waiting === 0, { what: 'a line without those who left' })
})

test('a dear hash that was never measured makes no call busy that is answered in time', async (t) => {
  const passwords = await readyPasswords(t)
  const dear = rejectsWith('expired', passwords.verify('x', SECONDS, { deadline: Date.now() + 1_000 }))
  await until(() => passwords.capacity().active === 1)
  assert.equal(await passwords.verify('U*U', bcryptHash), true)
  await dear
})

test('killed in the middle of its calls, another process answers all of them rightly', async (t) => {
  const passwords = await readyPasswords(t)
  const stored = await passwords.hash('x', { algorithm: 'bcrypt', cost: 9 })
  const calls = Array.from({ length: 24 }, (_, n) => passwords.verify(n % 2 === 0 ? 'x' : 'y', stored))
  await calls[0]
  for (const pid of await besides()) process.kill(pid, 'SIGKILL')
  const right = calls.map((_, n) => n % 2 === 0)
  assert.deepEqual(await Promise.all(calls), right)
})

test('a process that was stopped for good is replaced, and the calls in its hands are answered', async (t) => {
  const passwords = await readyPasswords(t, { policy: { algorithm: 'bcrypt', cost: 4 } })
  const stored = await passwords.hash('x')
  const [stopped] = await besides()
  assert.ok(stopped !== undefined)
  process.kill(stopped, 'SIGSTOP')
  const calls = Array.from({ length: 8 }, (_, n) => passwords.verify(n % 2 === 0 ? 'x' : 'y', stored))
  const right = calls.map((_, n) => n % 2 === 0)
  assert.deepEqual(await Promise.all(calls), right)
  assert.ok(!(await besides()).includes(stopped))
})

test('a call whose process is killed twice is rejected, and the next one is answered', async (t) => {
  const passwords = await readyPasswords(t, { concurrency: 1 })
  const verifying = rejectsWith('no_worker', passwords.verify('x', SECONDS))
  let killed = 0
  for (let kill = 0; kill < 2; kill += 1) {
    // Another process, and that it has the call: a start forgets what was known of the last one.
    const pid = await until(async () => (await besides()).find((one) => one !== killed))
    await until(() => passwords.capacity().known && passwords.capacity().active === 1, { timeoutMs: WAIT_MS })
    process.kill(pid, 'SIGKILL')
    killed = pid
  }
  await verifying
  assert.equal(await passwords.verify('U*U', bcryptHash), true)
})

test('a process that cannot be started is told by its code, at once the second time', async (t) => {
  const passwords = passwordsOf(t, {}, noProgram)
  const error = await rejectsWith('not_installed', passwords.hash('x'))
  assert.match(error.message, /a bundler took .* serverExternalPackages/)
  await rejectsWith('not_installed', passwords.hash('x'))
})

test('an application that runs itself where it forks is started once more, and no further', async (t) => {
  const dir = await scratchDir(t)
  const [program, application, starts] = ['program', 'application.mjs', 'starts'].map((name) => join(dir, name))
  const client = createRequire(import.meta.url).resolve('@spillway/client/application/create-passwords')
  // As what makes programs of one file does, unknown to us: whatever it is told to run, it runs itself.
  await writeFile(String(program), `#!/bin/sh\nexec ${process.execPath} ${application} "$@"\n`, { mode: 0o755 })
  const source = `
    import { appendFileSync, readFileSync } from 'node:fs'
    appendFileSync(${JSON.stringify(starts)}, 'x')
    if (readFileSync(${JSON.stringify(starts)}).length > 5) process.exit()
    process.execPath = ${JSON.stringify(program)}
    const { createPasswordsWith } = await import(${JSON.stringify(client)})
    const passwords = createPasswordsWith(new URL(${JSON.stringify(besideProgram)}), { waitMs: ${WAIT_MS} })
    for (let call = 0; call < 2; call += 1)
      await passwords.hash('x').catch(({ code, message }) => console.log(code + ': ' + message))`
  await writeFile(String(application), source)
  const { stdout } = await run(String(program))
  assert.match(stdout, /^(not_installed: a program in one file .*\n){2}$/)
  assert.equal(await readFile(String(starts), 'utf8'), 'xx')
})

test('where no implementation of the hashes is installed, the error says what to install', async (t) => {
  const passwords = passwordsOf(t, {}, new URL('../unfit-program.cjs', import.meta.url))
  const error = await rejectsWith('not_installed', passwords.hash('x'))
  assert.match(error.message, /install @node-rs\/argon2 and @node-rs\/bcrypt/)
})

const smallContainer = new URL('../small-container-program.cjs', import.meta.url)

test('a policy that takes more memory than there is for one thread is told by its code', async (t) => {
  const policy = { algorithm: 'argon2id', memoryKib: 90 * 1_024 } as const
  const passwords = passwordsOf(t, { policy, concurrency: 4 }, smallContainer)
  const error = await rejectsWith('unsupported_policy', passwords.hash('x'))
  assert.match(error.message, /more memory than a slot has here/)
  assert.doesNotMatch(error.message, /install/)
})

test('a process hashes in as many threads as there is memory for', async (t) => {
  const policy = { algorithm: 'argon2id', memoryKib: 30 * 1_024 } as const
  const passwords = await readyPasswords(t, { policy, concurrency: 4 }, smallContainer)
  assert.equal(passwords.capacity().slots, 3)
  assert.match(await passwords.hash('x'), /m=30720/)
})

const endings = {
  'that does not close': '',
  'that is killed in the middle of a call': `
    void passwords.verify('x', ${JSON.stringify(SECONDS)})
    process.kill(process.pid, 'SIGKILL')`,
}

for (const [what, ending] of Object.entries(endings)) {
  test(`a process ends with an application ${what}`, async () => {
    const script = `
    const { createPasswordsWith } = await import('@spillway/client/application/create-passwords')
    const passwords = createPasswordsWith(new URL(${JSON.stringify(besideProgram)}), { waitMs: ${WAIT_MS} })
    await passwords.hash('x', { algorithm: 'bcrypt', cost: 4 })
    const { readFileSync } = await import('node:fs')
    console.log(readFileSync('/proc/' + process.pid + '/task/' + process.pid + '/children', 'utf8'))${ending}`
    const ended = run(process.execPath, ['--input-type=module', '-e', script], { cwd: import.meta.dirname })
    const { stdout } = await (ending === '' ? ended : ended.catch((error: { stdout: string }) => error))
    const pid = Number(stdout)
    assert.ok(pid > 1, stdout)
    await until(() =>
      readFile(`/proc/${pid}/cmdline`, 'utf8').then(
        (line) => line === '',
        () => true,
      ),
    )
  })
}
