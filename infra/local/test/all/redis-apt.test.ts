// A Redis server from the packages of Debian or Ubuntu.
import assert from 'node:assert/strict'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'vitest'
import { Keeper } from '../../src/processes/keeper.ts'
import { onPath } from '../../src/processes/run.ts'
import { scratchDir } from '../../src/rig/namespace.ts'
import { aptRedis, serverNames } from '../../src/services/redis.ts'

const noApt = onPath(serverNames) ? 'there is a Redis on the PATH' : onPath(['apt-get']) ? false : 'there is no apt'

test.skipIf(noApt)('two runs that fetch Redis at once both get one that works', async (t) => {
  const dir = await scratchDir(t)
  const keeper = new Keeper()
  t.onTestFinished(() => keeper.close())
  const fetched = join(dir, 'programs')
  const said: string[] = []
  const search = { keeper, dir, programsDir: fetched, durable: false, say: (sentence: string) => said.push(sentence) }
  const programs = await Promise.all([aptRedis(search), aptRedis(search)])
  assert.equal(said.length, 2)
  for (const program of programs) {
    const { command, env } = program?.(0).process ?? { command: '' }
    assert.match(await keeper.run({ command, args: ['--version'], env: { ...env } }), /v=\d/)
  }
  assert.equal((await readdir(fetched)).length, 1, 'no half of one is left')
  await aptRedis(search)
  assert.equal(said.length, 2, 'what was fetched is used again')
})

test.skipIf(noApt)('a package that is installed without its program on the PATH is fetched all the same', async (t) => {
  const dir = await scratchDir(t)
  const keeper = new Keeper()
  t.onTestFinished(() => keeper.close())
  // For dpkg they are installed, with all that they need.
  const names = ['redis-server', 'redis-tools', 'lsb-base', 'libjemalloc2', 'liblzf1']
  const shown = names.map((name) => keeper.run({ command: 'apt-cache', args: ['show', '--no-all-versions', name] }))
  const entries = (await Promise.all(shown)).map((entry) =>
    entry
      .trim()
      .replace('\n', '\nStatus: install ok installed\n')
      .replaceAll(/^(Filename|Size|SHA256|MD5sum|Description-md5): .*\n/gm, ''),
  )
  const statusFile = join(dir, 'status')
  await writeFile(statusFile, `${await readFile('/var/lib/dpkg/status', 'utf8')}\n${entries.join('\n\n')}\n`)
  const search = { keeper, dir, programsDir: join(dir, 'programs'), statusFile, durable: false, say: () => undefined }
  // The program is there, and lacks only the libraries that this machine was said to have.
  await assert.rejects(aptRedis(search), /redis-server.* error while loading shared libraries: lib(jemalloc|lzf)/)
})
