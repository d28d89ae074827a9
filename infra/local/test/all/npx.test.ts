// What README and .ci/run tell npx to do, on a machine that has no pnpm, no Rust and nobody to ask:
// npm's `yes` is false, there is no terminal, and npm's cache is empty. The registry is one of this
// test's own: its pnpm says what it was asked for.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { delimiter, join } from 'node:path'
import { type TestContext, test } from 'vitest'
import { listening } from '../../src/processes/port.ts'
import { repositoryDir } from '../../src/processes/repository.ts'

import { scratchDir } from '../../src/rig/namespace.ts'

/** A registry of one package, a pnpm that prints its arguments, and npm's environment for it. */
async function bareMachine(t: TestContext): Promise<NodeJS.ProcessEnv> {
  const dir = await scratchDir(t)
  const manifest = { name: 'pnpm', version: '1.0.0', bin: { pnpm: 'pnpm.js' } }
  const home = join(dir, 'home')
  const bin = join(dir, 'bin')
  await Promise.all([mkdir(home), mkdir(bin)])
  await writeFile(join(bin, 'cargo'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
  await writeFile(join(dir, 'package.json'), JSON.stringify(manifest))
  await writeFile(join(dir, 'pnpm.js'), "#!/usr/bin/env node\nconsole.log('asked for', ...process.argv.slice(2))\n")
  const path = [bin, process.env.PATH].join(delimiter)
  const env = { PATH: path, HOME: home, npm_config_prefix: home, npm_config_update_notifier: 'false' }
  execFileSync('npm', ['pack', '--silent'], { cwd: dir, env })
  const tarball = await readFile(join(dir, 'pnpm-1.0.0.tgz'))
  const registry = createServer(({ url, headers }, response) => {
    const dist = { tarball: `http://${headers.host}/pnpm.tgz` }
    const about = { name: 'pnpm', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': { ...manifest, dist } } }
    if (url === '/pnpm.tgz') response.end(tarball)
    else if (url === '/pnpm') response.end(JSON.stringify(about))
    else response.writeHead(404).end()
  })
  const port = await listening(registry)
  t.onTestFinished(async () => {
    registry.close().closeAllConnections()
  })
  return { ...env, npm_config_registry: `http://127.0.0.1:${port}`, npm_config_yes: 'false' }
}

/** Runs a line of a shell from the checkout's root, without a terminal, and gives its output. */
async function run(t: TestContext, line: string, machine: NodeJS.ProcessEnv): Promise<string> {
  const cache = join(await scratchDir(t), 'cache')
  const child = spawn('sh', ['-c', line], {
    cwd: repositoryDir,
    env: { ...machine, npm_config_cache: cache },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (said += text))
  await once(child, 'close')
  return said
}

test('npx asks nobody, by any of the commands that README and .ci/run give', async (t) => {
  const machine = await bareMachine(t)
  const canceled = await run(t, 'npx pnpm start', machine)
  assert.match(canceled, /canceled/, 'the machine is one on which npx would have asked')
  const readme = await readFile(join(repositoryDir, 'README.md'), 'utf8')
  const lines = readme.split('\n').filter((line) => line.startsWith('npx --yes pnpm '))
  assert.ok(lines.length >= 2, 'README starts with npx')
  const said = await Promise.all([...lines, '.ci/run'].map((line) => run(t, line, machine)))
  assert.deepEqual(said, [
    ...lines.map((line) => `asked for ${/pnpm (.*?)\s*(#|$)/.exec(line)?.[1]}\n`),
    'asked for install --frozen-lockfile\nasked for check\nasked for --silent test --all\n0 passed, 0 failed\n',
  ])
})

test('no text of this checkout tells anyone to run npx without --yes or --no-install', async () => {
  const without: string[] = []
  for await (const file of textFiles(repositoryDir)) {
    if (/\bnpx (?!--yes |--no-install\b)(-|pnpm)/.test(await readFile(file, 'utf8'))) without.push(file)
  }
  assert.deepEqual(without, [join(import.meta.dirname, 'npx.test.ts')])
})

/** The repository's own files, without those that were fetched, built or measured. */
async function* textFiles(dir: string): AsyncGenerator<string> {
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    const path = join(dir, entry.name)
    if (entry.isFile() && /\.(md|ts|[cm]?js|sh|ya?ml)$|^package\.json$|^run$|^Dockerfile$/.test(entry.name)) yield path
    if (entry.isDirectory() && !/^(node_modules|dist|generated|reports|\.git|\.spillway|\.turbo)$/.test(entry.name))
      yield* textFiles(path)
  }
}
