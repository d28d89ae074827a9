// Shared by the tests of generated clients: the description of a real gateway, in a folder where the client is generated and runs.
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { TestContext } from 'vitest'

export const run = promisify(execFile)
export const clientsDir = fileURLToPath(new URL('clients/', import.meta.url))

/** The folder goes with the test. */
export async function describedIn(t: TestContext, url: string): Promise<string> {
  const dir = await mkdtemp(join(clientsDir, '.generated-'))
  t.onTestFinished(() => rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))
  await writeFile(join(dir, 'openapi.json'), await (await fetch(`${url}/openapi.json`)).text())
  return dir
}
