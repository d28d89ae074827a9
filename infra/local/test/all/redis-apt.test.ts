// A Redis server from the packages of Debian or Ubuntu.
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'vitest'
import { openKeeper } from '../../src/processes/keeper.ts'
import { onPath } from '../../src/processes/run.ts'
import { scratchDir } from '../../src/rig/namespace.ts'
import { aptRedis, serverNames } from '../../src/services/find-redis.ts'

const noApt = onPath(serverNames) ? 'there is a Redis on the PATH' : onPath(['apt-get']) ? false : 'there is no apt'

test.skipIf(noApt)('two runs that fetch Redis at once both get one that works', async (t) => {
  const dir = await scratchDir(t)
  const keeper = openKeeper()
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
