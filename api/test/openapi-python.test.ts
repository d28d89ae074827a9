// A Python client that is made from the description of the API logs in to a real gateway.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { programsDir } from '@spillway/local/processes/repository'
import { onPath } from '@spillway/local/services/on-path'
import { newCredentials } from './client.ts'
import { clientsDir, describedIn, run } from './clients.ts'
import { openSystem } from './system.ts'

const GENERATOR = 'openapi-python-client==0.29.1'
/** A machine that cannot have it by then goes without: less than a test file may take. */
const INSTALL_MS = 130_000

const python = await pythonWithGenerator()
const skip = python === undefined ? `there is no python3 with venv, or no ${GENERATOR} for it` : false

test('a Python client is made from the description without a warning, and logs in', { skip }, async (t) => {
  const system = await openSystem()
  after(() => system.close())
  await system.worker()
  const { url } = await system.gateway()
  const dir = await describedIn(t, url)
  const generated = join(dir, 'generated')
  const generate = ['generate', '--path', 'openapi.json', '--output-path', generated, '--meta', 'none']
  const { stdout: said } = await run(python ?? '', ['-m', 'openapi_python_client', ...generate], { cwd: dir })
  assert.doesNotMatch(said, /warning|error/i)
  await copyFile(join(clientsDir, 'login.py'), join(dir, 'login.py'))
  const { email, password } = newCredentials()
  const { stdout } = await run(python ?? '', ['login.py', url, email, password], { cwd: dir })
  assert.equal(stdout.trim(), email)
})

/** The generator in an environment of its own, made once for this checkout; undefined where that cannot be. */
async function pythonWithGenerator(): Promise<string | undefined> {
  const home = join(programsDir, GENERATOR.replace('==', '-'))
  const interpreter = (dir: string) => join(dir, 'bin/python')
  const installed = onPath(['python3'])
  if (existsSync(interpreter(home)) || installed === undefined) return installed && interpreter(home)
  await mkdir(programsDir, { recursive: true })
  const dir = await mkdtemp(`${home}-`)
  try {
    const timeout = INSTALL_MS / 2
    await run(installed, ['-m', 'venv', dir], { timeout })
    await run(interpreter(dir), ['-m', 'pip', 'install', '--quiet', GENERATOR], { timeout })
    // Somebody else may have been first; theirs is the same.
    await rename(dir, home).catch(() => undefined)
    return interpreter(home)
  } catch {
    return undefined
  } finally {
    // A process that was told to stop may still be writing.
    await rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }
}
