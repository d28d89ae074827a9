// A TypeScript client that is made from the description of the API logs in to a real gateway.
import assert from 'node:assert/strict'
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, test } from 'vitest'
import { newCredentials } from '../client.ts'
import { clientsDir, describedIn, run } from '../clients.ts'
import { openSystem } from '../system.ts'

const system = await openSystem()
afterAll(() => system.close())
await system.worker()
const { url } = await system.gateway()

test('a TypeScript client is made from the description, type-checked, and logs in', async (t) => {
  const dir = await describedIn(t, url)
  const bin = (name: string) => join(clientsDir, 'node_modules/.bin', name)
  await run(bin('openapi-typescript'), ['openapi.json', '-o', 'api.ts'], { cwd: dir })
  await copyFile(join(clientsDir, 'login.ts'), join(dir, 'login.ts'))
  const compilerOptions = [
    '--strict',
    '--module',
    'nodenext',
    '--target',
    'es2023',
    '--types',
    'node',
    '--skipLibCheck',
  ]
  await run(bin('tsc'), [...compilerOptions, 'login.ts'], { cwd: dir }).catch(({ stdout }) => assert.fail(stdout))
  const { email, password } = newCredentials()
  const { stdout } = await run(process.execPath, ['login.js', url, email, password], { cwd: dir })
  assert.equal(stdout.trim(), email)
})
