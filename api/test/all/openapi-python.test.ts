// A Python client that is made from the description of the API logs in to a real gateway.
import assert from 'node:assert/strict'
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, test } from 'vitest'
import { newCredentials } from '../client.ts'
import { clientsDir, describedIn, run } from '../clients.ts'
import { pythonWith } from '../python.ts'
import { openSystem } from '../system.ts'

const GENERATOR = 'openapi-python-client==0.29.1'

const python = await pythonWith([GENERATOR])
const skip = python === undefined ? `there is no python3 with venv, or no ${GENERATOR}` : false

test.skipIf(skip)('a Python client is made from the description without a warning, and logs in', async (t) => {
  const system = await openSystem()
  afterAll(() => system.close())
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
