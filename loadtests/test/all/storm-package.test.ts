// The package as `pnpm pack` makes it, run by npx in an empty folder.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { listening } from '@spillway/infra/processes/port'
import { scratchDir } from '@spillway/infra/rig/namespace'
import { pack } from '@spillway/infra/start/build'
import { test } from 'vitest'

const run = promisify(execFile)
const { PATH, HOME, NODE_EXTRA_CA_CERTS } = process.env
const env = { PATH, HOME, NODE_EXTRA_CA_CERTS, NODE_ENV: 'production' }

test('npx runs the storm from an empty folder, and installs nothing else', async (t) => {
  const folder = await scratchDir(t)
  const tarball = await pack('loadtests/storm', folder)
  const { stdout: packed } = await run('tar', ['--list', '--file', tarball])
  assert.deepEqual(packed.trim().split('\n').sort(), [
    'package/LICENSE',
    'package/README.md',
    'package/dist/simple.min.css',
    'package/dist/spillway-storm.js',
    'package/package.json',
  ])
  const server = createServer((_request, response) => response.end())
  t.onTestFinished(() => void server.close())
  const target = ['--target', `http://127.0.0.1:${await listening(server)}`, '--login', '/login', '--probe', '/probe']
  const short = ['--users', '2', '--calm', '1', '--duration', '1', '--p99', '5000', '--report', 'storm.html']
  const npx = ['--yes', '--offline', '--package', tarball, 'spillway-storm']
  const { stdout } = await run('npx', [...npx, ...target, ...short], { cwd: folder, env })
  assert.match(
    stdout,
    /^2 users logged in to http:\/\/127\.0\.0\.1:\d+ \(POST \/login\) again and again for 1(\.\d)? s/,
  )
  assert.match(stdout, /GET \/probe took/)
  assert.match(await readFile(join(folder, 'storm.html'), 'utf8'), /<svg /)
})
