// The examples of services that verify access tokens: each knows the issuer alone, takes what was
// signed by a key of each type that it has, and refuses every forgery.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { cp, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { freePort } from '@spillway/infra/processes/port'
import { programsDir } from '@spillway/infra/processes/repository'
import { onPath } from '@spillway/infra/processes/run'
import { until } from '@spillway/infra/processes/until'
import { newSigningKey } from '@spillway/infra/start/secrets'
import { decodeJwt } from 'jose'
import { type TestContext, test } from 'vitest'
import { type Algorithm, algorithms } from '../../src/sessions/signing-keys.ts'
import { expect } from '../client.ts'
import { createForger, privateKeyOf } from '../forgeries.ts'
import { pythonWith } from '../python.ts'
import { openSystem } from '../system.ts'

const run = promisify(execFile)
const examplesDir = fileURLToPath(new URL('../../examples/', import.meta.url))
const AUDIENCE = 'shop'
/** Maven, Go and npm fetch what the examples need, or the machine goes without. */
const BUILD_MS = 120_000

interface Built {
  command: string
  args: string[]
  cwd: string
}

/** Undefined where a tool is missing, or what it needs cannot be had. */
async function attempt(build: () => Promise<Built>, ...tools: string[]): Promise<Built | undefined> {
  if (tools.some((tool) => onPath([tool]) === undefined)) return undefined
  return await build().catch(() => undefined)
}

const spring = attempt(
  async () => {
    const cwd = join(examplesDir, 'verify-spring')
    await run('mvn', ['-q', '-B', 'package'], { cwd, timeout: BUILD_MS })
    return { command: 'java', args: ['-XX:TieredStopAtLevel=1', '-jar', 'target/verify.jar'], cwd }
  },
  'java',
  'mvn',
)

const go = attempt(async () => {
  const cwd = join(examplesDir, 'verify-go')
  const program = join(programsDir, 'verify-go')
  await run('go', ['build', '-o', program, '.'], { cwd, timeout: BUILD_MS })
  return { command: program, args: [], cwd }
}, 'go')

const node = attempt(async () => {
  const from = join(examplesDir, 'verify-node')
  const packages = await readFile(join(from, 'package.json'))
  const cwd = join(programsDir, `verify-node-${createHash('sha256').update(packages).digest('hex').slice(0, 12)}`)
  const isInstalled = existsSync(join(cwd, 'node_modules/.package-lock.json'))
  await cp(from, cwd, { recursive: true })
  if (!isInstalled)
    await run('npm', ['install', '--no-audit', '--no-fund', '--no-package-lock'], { cwd, timeout: BUILD_MS })
  return { command: process.execPath, args: [], cwd }
}, 'npm')

const python = pythonWith(['pyjwt==2.15.1', 'cryptography==50.0.2', 'authlib==1.9.10', 'joserfc==1.8.0']).then(
  (command) => (command === undefined ? undefined : { command, args: [], cwd: join(examplesDir, 'verify-python') }),
)

/** A service, what it is built with, and the algorithms that it has. */
const verifiers: [string, Built | undefined, string[], readonly Algorithm[], string][] = [
  ['Spring Security', await spring, [], ['ES256', 'RS256'], 'Java with Maven, or its packages'],
  ['go-oidc', await go, [], algorithms, 'Go, or its modules'],
  ['jose', await node, ['jose.mjs'], algorithms, 'npm, or its packages'],
  ['express-oauth2-jwt-bearer', await node, ['express.mjs'], algorithms, 'npm, or its packages'],
  ['PyJWT', await python, ['verify_pyjwt.py'], algorithms, 'python3 with venv, or its packages'],
  ['Authlib', await python, ['verify_authlib.py'], algorithms, 'python3 with venv, or its packages'],
]

const system = await openSystem()
await system.worker()
const account = await (await system.gateway()).api.newAccount()

/** A gateway that is its own issuer. It also publishes keys of the other types. */
async function issuerWith(alg: Algorithm) {
  const PORT = String(await freePort())
  const signing = newSigningKey('key', alg)
  const beside = algorithms.filter((other) => other !== alg).map((other) => newSigningKey(other, other))
  const keys = { SPILLWAY_JWT_KEYS: [signing, ...beside].join(), JWT_AUDIENCE: AUDIENCE }
  const { api } = await system.gateway({ ...keys, PORT, ISSUER: `http://127.0.0.1:${PORT}` })
  const { accessToken } = expect(200, await api.login(account))
  const payload = decodeJwt(accessToken)
  const forger = createForger({ key: privateKeyOf(signing), kid: 'key', alg, payload, accessToken })
  return { url: api.url, accessToken, user: payload.sub, forgeries: await forger.forgeries() }
}

/** Starts a service and returns its address, once it answers. */
async function started(t: Pick<TestContext, 'onTestFinished'>, { command, args, cwd }: Built, issuer: string) {
  const PORT = String(await freePort())
  const { PATH, HOME } = process.env
  const env = { PATH, HOME, ISSUER: issuer, AUDIENCE, PORT }
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (said += text))
  t.onTestFinished(async () => {
    if (child.kill('SIGKILL')) await once(child, 'close')
  })
  const url = `http://127.0.0.1:${PORT}/`
  const answers = async () => {
    assert.equal(child.exitCode, null, said)
    return fetch(url).then(
      () => true,
      () => false,
    )
  }
  await until(answers, { what: `an answer of ${command} ${args}`, timeoutMs: 60_000 })
  return url
}

for (const [name, built, args, takes, needs] of verifiers)
  test.skipIf(built === undefined && `there is no ${needs}`)(`${name}, by the issuer alone`, async (t) => {
    if (built === undefined) return
    for (const alg of algorithms) {
      const issuer = await issuerWith(alg)
      const url = await started(t, { ...built, args: [...built.args, ...args] }, issuer.url)
      const ask = (token: string) => fetch(url, { headers: { authorization: `Bearer ${token}` } })
      const answer = await ask(issuer.accessToken)
      assert.equal(answer.status, takes.includes(alg) ? 200 : 401, alg)
      if (answer.status === 200) assert.deepEqual(await answer.json(), { user: issuer.user })
      assert.equal((await fetch(url)).status, 401)
      const letIn: string[] = []
      for (const [kind, token] of Object.entries(issuer.forgeries)) {
        const { status } = await ask(token)
        if (status !== 401) letIn.push(`${alg}, ${kind}: ${status}`)
      }
      assert.deepEqual(letIn, [])
    }
  })
