import assert from 'node:assert/strict'
import { test } from 'vitest'
import { type Engine, Engines } from '../../src/hashing/engine.ts'

const knownAnswers = [{ password: 'known', stored: '#known' }]

/** An engine whose hash of a password is the password after a number sign. */
function engine(
  name: string,
  verify: Engine['verify'] = async (password, storedHash) => storedHash === `#${password}`,
) {
  return async (): Promise<Engine> => ({ name, verify })
}

async function namesOf(candidates: (() => Promise<Engine>)[]): Promise<string[]> {
  const names: string[] = []
  for await (const { name } of (await Engines.load(candidates, knownAnswers)).inOrder()) names.push(name)
  return names
}

/** Engines without a test. */
function working(...engines: [Engine, ...Engine[]]): Promise<Engines<Engine>> {
  return Engines.load(
    engines.map((one) => async () => one),
    [],
  )
}

test('an engine is loaded when those before it do not do', async () => {
  const loaded: string[] = []
  const candidate = (name: string) => async () => {
    loaded.push(name)
    return await engine(name)()
  }
  const engines = await Engines.load([candidate('fast'), candidate('slow')], knownAnswers)
  assert.equal(engines.first.name, 'fast')
  assert.equal(await engines.verify('known', '#known'), true)
  assert.deepEqual(loaded, ['fast'])
  assert.equal((await engines.firstThat(({ name }) => name === 'slow'))?.name, 'slow')
  assert.equal((await engines.firstThat(({ name }) => name === 'slow'))?.name, 'slow')
  assert.equal(await engines.firstThat(({ name }) => name === 'none'), undefined)
  assert.deepEqual(loaded, ['fast', 'slow'])
})

test('an engine that does not load, fails, or answers wrong either way is passed over', async () => {
  const broken = [
    async () => {
      throw new Error('no prebuilt code for this processor')
    },
    engine('fails', async () => {
      throw new Error('illegal instruction')
    }),
    engine('matches everything', async () => true),
    engine('matches nothing', async () => false),
    engine('reads only the beginning', async (password, storedHash) => `#${password}`.startsWith(storedHash)),
  ]
  for (const [i, candidate] of broken.entries()) {
    assert.deepEqual(await namesOf([candidate, engine('slow')]), ['slow'], `${i}`)
  }
  await assert.rejects(Engines.load(broken, knownAnswers), /no implementation of the hash works on this machine/)
})

test('a hash that the first engine refuses is verified by the next one, and refused when all refuse it', async () => {
  const refuses = engine('picky', async () => {
    throw new Error('the salt is too short for me')
  })
  const engines = await working(await refuses(), await engine('patient')())
  assert.equal(await engines.verify('known', '#known'), true)
  assert.equal(await engines.verify('other', '#known'), false)
  await assert.rejects((await working(await refuses())).verify('known', '#known'), /too short for me/)
})

test('no engine is asked after one that answered', async () => {
  const second = engine('second', async () => assert.fail('asked'))
  assert.equal(await (await working(await engine('first')(), await second())).verify('other', '#known'), false)
})
