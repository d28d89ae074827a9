import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Redis } from 'ioredis'
import { test } from 'vitest'
import { Keeper } from '../../src/processes/keeper.ts'
import { startProcess } from '../../src/processes/node-process.ts'
import { programsDir, repositoryDir } from '../../src/processes/repository.ts'
import { scratchDir } from '../../src/rig/namespace.ts'
import { startRedis } from '../../src/services/redis.ts'

test('it keeps jobs over a restart, evicts nothing, and asks for the password', async (t) => {
  const dir = await scratchDir(t)
  const keeper = new Keeper()
  t.onTestFinished(() => keeper.close())
  const start = () =>
    startRedis({
      keeper,
      dir: join(dir, 'redis'),
      logFile: join(dir, 'redis.log'),
      programsDir,
      durable: true,
      password: 'a/b@c:"d"',
      say: () => {},
    })
  const first = await start()
  // redis-cli sends an empty user otherwise, which no server knows.
  assert.match(first.url, /^redis:\/\/default:[^@]+@127\.0\.0\.1:\d+$/)
  const client = new Redis(first.url)
  await client.set('kept', 'yes')
  assert.deepEqual(await client.config('GET', 'maxmemory-policy'), ['maxmemory-policy', 'noeviction'])
  client.disconnect()
  const { port } = new URL(first.url)
  const stranger = new Redis(Number(port), { enableReadyCheck: false })
  stranger.on('error', () => {})
  await assert.rejects(stranger.get('kept'), /NOAUTH/)
  stranger.disconnect()
  await first.close()

  const second = await start()
  const later = new Redis(second.url)
  assert.equal(await later.get('kept'), 'yes')
  later.disconnect()
  await second.close()
})

test('without any way to get a Redis, nothing is installed and one sentence names the ways out', async (t) => {
  const dir = await scratchDir(t)
  const bin = join(dir, 'bin')
  await mkdir(bin)
  await symlink(process.execPath, join(bin, 'node'))
  const asked = join(dir, 'asked')
  for (const manager of ['brew', 'dnf', 'apk', 'pacman']) {
    await writeFile(join(bin, manager), `#!/bin/sh\necho "$0" "$@" >> '${asked}'\n`, { mode: 0o755 })
  }
  const script = join(dir, 'find.mts')
  const module = (name: string) => JSON.stringify(pathToFileURL(join(repositoryDir, 'infra/local/src', name)).href)
  await writeFile(
    script,
    `import { Keeper } from ${module('processes/keeper.ts')}
     import { findRedis } from ${module('services/redis.ts')}
     const search = { keeper: new Keeper(), dir: ${JSON.stringify(dir)}, programsDir: ${JSON.stringify(dir)}, durable: false }
     await findRedis({ ...search, say: console.log }).catch((error) => console.log(error.message))`,
  )
  const search = startProcess({ entry: script, nodeArgs: ['--import', 'tsx'], env: { PATH: bin } })
  t.onTestFinished(() => search.close())
  await search.exited
  assert.equal(
    search.output(),
    'No Redis could be had: install redis-server or valkey-server, start Docker or Podman, ' +
      'or set REDIS_URL to your own Redis server.',
  )
  assert.equal(existsSync(asked), false, 'a package manager was run')
})
