// Pages with the client as it is packed, on an origin of their own.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listening } from '@spillway/infra/processes/port'
import type { TestContext } from 'vitest'
import { bundlePageDoor } from '../../packaging/bundle.ts'

/** Serves the client as /browser.js, and an empty page as all else. Gives the port. */
export async function servePageDoor(t: TestContext): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'spillway-test-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await bundlePageDoor(folder)
  const script = await readFile(join(folder, 'browser.js'))
  const pages = createServer(({ url }, response) => {
    response.setHeader('content-type', url === '/browser.js' ? 'text/javascript' : 'text/html')
    response.end(url === '/browser.js' ? script : '<!doctype html><title>Page</title>')
  })
  t.onTestFinished(() => void pages.close())
  return await listening(pages)
}
