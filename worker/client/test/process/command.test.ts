// The command `spillway worker`: what it says on a terminal, and off it.
import assert from 'node:assert/strict'
import { type ChildProcessByStdio, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { scratchDir } from '@spillway/infra/harness/namespace'
import { test } from 'vitest'
import { type Space, spaceFor } from '../../../test/space.ts'

const run = promisify(execFile)
const command = fileURLToPath(new URL('../../../dist/command.cjs', import.meta.url))

function variables({ redisUrl, prefix }: Space): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, HOME: process.env.HOME, REDIS_URL: redisUrl, QUEUE_PREFIX: prefix }
}

/** What it has said on a terminal by the time that the worker is ready; it runs until the test ends. */
async function saidOnTerminal(space: Space, env: NodeJS.ProcessEnv, ...args: string[]): Promise<string> {
  const line = [process.execPath, command, 'worker', ...args].map((word) => `'${word}'`).join(' ')
  const terminal = spawn('script', ['-qec', line, '/dev/null'], { env, stdio: ['ignore', 'pipe', 'ignore'] })
  space.closing(() => ended(terminal))
  let said = ''
  for await (const chunk of terminal.stdout.iterator({ destroyOnReturn: false })) {
    said += String(chunk)
    if (said.includes('worker ready')) break
  }
  terminal.stdout.resume()
  return said.replaceAll('\r', '')
}

async function ended(terminal: ChildProcessByStdio<null, Readable, null>): Promise<void> {
  if (terminal.exitCode === null && terminal.kill()) await once(terminal, 'exit')
}

test('keys are made on a terminal alone, and what is no command is refused', async (t) => {
  const env = variables(spaceFor(t))
  const called = (...args: string[]) => run(process.execPath, [command, ...args], { env })
  const sentence = /^SPILLWAY_SEAL_KEYS is not set: "npx --no-install spillway keys" prints new ones$/m
  await assert.rejects(called('worker'), ({ code, stderr }) => code === 1 && sentence.test(stderr))
  for (const wrong of [['frob'], ['worker', '--frob']])
    await assert.rejects(called(...wrong), ({ code, stderr }) => code === 1 && /^spillway worker /.test(stderr))
})

const ofTerminals = test.skipIf(process.platform !== 'linux')

ofTerminals('no password of Redis is printed unless that is asked for', async (t) => {
  const space = spaceFor(t)
  const url = new URL(space.redisUrl)
  url.searchParams.set('family', '4')
  const said = await saidOnTerminal(space, { ...variables(space), REDIS_URL: url.href })
  assert.match(said, /^REDIS_URL is as in this terminal: --show-password prints it\.$/m)
  assert.doesNotMatch(said, /REDIS_URL=|redis:\/\//)
  assert.match(said, /^SPILLWAY_SEAL_KEYS=seal-1:[\w+/]{43}=$/m)
})

ofTerminals('what it prints is pasted into a .env as it is, and its port collides with no other worker', async (t) => {
  const space = spaceFor(t)
  // Another worker's, unless there is one.
  const other = createServer().on('error', () => undefined)
  other.listen(9465, '127.0.0.1')
  t.onTestFinished(() => void other.close())
  const url = new URL(space.redisUrl)
  url.searchParams.set('family', '4')
  const said = await saidOnTerminal(space, { ...variables(space), REDIS_URL: url.href }, '--show-password')
  const file = join(await scratchDir(t), '.env')
  await writeFile(file, said.match(/^\w+=.*$/gm)?.join('\n') ?? '')
  const script = `
    const { openPasswords } = await import('@spillway/client/application/create-passwords')
    const { readEnvironment } = await import('@spillway/client/shared-passwords')
    const passwords = openPasswords(readEnvironment(process.env))
    const stored = await passwords.hash('x', { algorithm: 'bcrypt', cost: 4 })
    console.log(passwords.capacity().by, await passwords.verify('x', stored))
    await passwords.close()`
  const args = [`--env-file=${file}`, '--input-type=module', '-e', script]
  const { stdout } = await run(process.execPath, args, { cwd: import.meta.dirname, env: { PATH: process.env.PATH } })
  assert.equal(stdout, 'workers true\n')
})
