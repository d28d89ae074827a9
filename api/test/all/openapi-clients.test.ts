// Clients that are made from the description of the API log in to a real gateway.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { until } from '@spillway/infra/processes/until'
import { type TestContext, test } from 'vitest'
import { newCredentials } from '../client.ts'
import { openSystem } from '../system.ts'

const run = promisify(execFile)
const clientsDir = fileURLToPath(new URL('../clients/', import.meta.url))
/** Only a hang takes longer: a compiler is a minute's work of a processor that others use. */
const COMPILED_MS = 400_000

const system = await openSystem()
await system.worker()
const { url } = await system.gateway()

/** The description of the gateway, in a folder where a client is made; it goes with the test. */
async function describedIn(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(clientsDir, '.generated-'))
  t.onTestFinished(() => rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))
  await writeFile(join(dir, 'openapi.json'), await (await fetch(`${url}/openapi.json`)).text())
  return dir
}

test('a TypeScript client is made from the description, type-checked, and logs in', {
  timeout: COMPILED_MS,
}, async (t) => {
  const dir = await describedIn(t)
  const bin = (name: string) => join(clientsDir, 'node_modules/.bin', name)
  await run(bin('openapi-typescript'), ['openapi.json', '-o', 'api.ts'], { cwd: dir })
  await copyFile(join(clientsDir, 'login.ts'), join(dir, 'login.ts'))
  const compilerOptions = '--strict --skipLibCheck --module nodenext --target es2023 --types node'.split(' ')
  await run(bin('tsc'), [...compilerOptions, 'login.ts'], { cwd: dir }).catch(({ stdout }) => assert.fail(stdout))
  // The program follows no ticket, which a busy machine may cause at any time.
  await until(async () => {
    const { email, password } = newCredentials()
    const { stdout } = await run(process.execPath, ['login.js', url, email, password], { cwd: dir })
    assert.equal(stdout.trim(), email)
    return true
  })
})
