// The example of a service that verifies access tokens: it knows the issuer only, takes what was
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
import { type Algorithm, algorithms } from '../../src/sessions/access-tokens.ts'
import { expect } from '../client.ts'
import { createForger, privateKeyOf } from '../forgeries.ts'
import { openSystem } from '../system.ts'

const run = promisify(execFile)
const examplesDir = fileURLToPath(new URL('../../examples/', import.meta.url))
const AUDIENCE = 'shop'
/** npm fetches what the example needs, or the machine goes without. */
const BUILD_MS = 120_000

/** The example with its packages; undefined without npm, or where these cannot be had. */
async function install(): Promise<string | undefined> {
  if (onPath(['npm']) === undefined) return undefined
  const from = join(examplesDir, 'verify-node')
  const packages = await readFile(join(from, 'package.json'))
  const cwd = join(programsDir, `verify-node-${createHash('sha256').update(packages).digest('hex').slice(0, 12)}`)
  const isInstalled = existsSync(join(cwd, 'node_modules/.package-lock.json'))
  await cp(from, cwd, { recursive: true })
  if (!isInstalled)
    await run('npm', ['install', '--no-audit', '--no-fund', '--no-package-lock'], { cwd, timeout: BUILD_MS })
  return cwd
}

const example = await install().catch(() => undefined)

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
async function started(t: Pick<TestContext, 'onTestFinished'>, cwd: string, issuer: string) {
  const PORT = String(await freePort())
  const { PATH, HOME } = process.env
  const env = { PATH, HOME, ISSUER: issuer, AUDIENCE, PORT }
  const child = spawn(process.execPath, ['jose.mjs'], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
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
  await until(answers, { what: 'an answer of the example', timeoutMs: 60_000 })
  return url
}

const skip = example === undefined && 'there is no npm, or the packages of the example cannot be had'
test.skipIf(skip)('jose, by the issuer alone', async (t) => {
  if (example === undefined) return
  for (const alg of algorithms) {
    const issuer = await issuerWith(alg)
    const url = await started(t, example, issuer.url)
    const ask = (token: string) => fetch(url, { headers: { authorization: `Bearer ${token}` } })
    const answer = await ask(issuer.accessToken)
    assert.equal(answer.status, 200, alg)
    assert.deepEqual(await answer.json(), { user: issuer.user })
    assert.equal((await fetch(url)).status, 401)
    const letIn: string[] = []
    for (const [kind, token] of Object.entries(issuer.forgeries)) {
      const { status } = await ask(token)
      if (status !== 401) letIn.push(`${alg}, ${kind}: ${status}`)
    }
    assert.deepEqual(letIn, [])
  }
})
