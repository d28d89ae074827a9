// What PostgreSQL of root leaves outside of a checkout.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'vitest'
import { scratchDir } from '../../src/rig/namespace.ts'
import { makePlaces, postgresUser, removeHome, removeUnowned } from '../../src/services/postgres-user.ts'

const notRoot = process.getuid?.() === 0 ? false : 'only root runs PostgreSQL as another user'

/** A checkout that other users cannot enter, with a package of programs. */
async function checkout(t: TestContext, version: string) {
  const dir = await scratchDir(t)
  await chmod(dir, 0o700)
  const binDir = join(dir, 'package/native/bin')
  await mkdir(binDir, { recursive: true })
  await writeFile(join(dir, 'package/package.json'), JSON.stringify({ version }))
  await writeFile(join(binDir, 'postgres'), version)
  return { dir, wanted: { home: join(dir, 'state/postgres'), binDir } }
}

test.skipIf(notRoot)(
  'checkouts of root share the programs outside, and a start deletes what no checkout owns',
  async (t) => {
    const outside = join(await scratchDir(t), 'outside')
    const said: string[] = []
    const start = ({ wanted }: Awaited<ReturnType<typeof checkout>>) =>
      makePlaces(wanted, postgresUser(), (sentence) => said.push(sentence), outside)
    const [first, second, newer] = [await checkout(t, '1'), await checkout(t, '1'), await checkout(t, '2')]

    const [one, two] = await Promise.all([start(first), start(second)])
    assert.equal(one.binDir, two.binDir)
    assert.notEqual(one.home, two.home)
    assert.ok(existsSync(join(one.binDir, 'postgres')))
    assert.equal(said.length, 2)
    for (const sentence of said) assert.ok(sentence.includes(`data and programs are in ${outside}`), sentence)
    assert.deepEqual(await programsIn(outside), ['postgresql-1'])

    await rm(first.dir, { recursive: true })
    const three = await start(newer)
    assert.deepEqual([existsSync(one.home), existsSync(two.home), existsSync(three.home)], [false, true, true])
    assert.deepEqual(await programsIn(outside), ['postgresql-1', 'postgresql-2'])

    await removeHome(second.wanted.home, outside)
    await removeUnowned(outside)
    assert.deepEqual(await programsIn(outside), ['postgresql-2'])
    await rm(newer.dir, { recursive: true })
    await removeUnowned(outside)
    assert.deepEqual(await readdir(outside), [])
  },
)

async function programsIn(outside: string): Promise<string[]> {
  return (await readdir(outside)).filter((name) => name.startsWith('postgresql-')).sort()
}
