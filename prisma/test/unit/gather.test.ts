// What waits together goes together, and what goes wrong is only its row's.
import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, test, vi } from 'vitest'
import { gather } from '../../src/gather.ts'

// A busy machine takes longer for a turn than a row waits for a statement.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

/** Statements that are answered when the test says so. */
function statements() {
  const sent: { rows: readonly string[]; answer(error?: Error): void }[] = []
  const send = (rows: readonly string[]) =>
    new Promise<string[]>((resolve, reject) => {
      const answer = (error?: Error) => (error ? reject(error) : resolve(rows.map((row) => `${row} done`)))
      sent.push({ rows, answer })
    })
  const one = async (row: string) => (await send([row]))[0] ?? ''
  return { sent, one, rows: () => sent.map(({ rows }) => rows), run: gather<string, string>({ one, several: send }) }
}

test('rows of one turn go in one statement, and those that come while it is on its way in the next', async () => {
  const { sent, run, rows } = statements()
  const first = [run('a'), run('b')]
  await turn()
  const second = [run('c'), run('d'), run('e')]
  await turn()
  assert.deepEqual(rows(), [['a', 'b']])
  sent[0]?.answer()
  assert.deepEqual(await Promise.all(first), ['a done', 'b done'])
  assert.deepEqual(rows(), [
    ['a', 'b'],
    ['c', 'd', 'e'],
  ])
  sent[1]?.answer()
  assert.deepEqual(await Promise.all(second), ['c done', 'd done', 'e done'])
})

test('a statement that hangs holds nobody up', async () => {
  const { sent, run } = statements()
  const hanging = run('a')
  await turn()
  const next = run('b')
  await turn()
  assert.equal(sent.length, 1)
  vi.advanceTimersByTime(25)
  sent[1]?.answer()
  assert.equal(await next, 'b done')
  sent[0]?.answer()
  assert.equal(await hanging, 'a done')
})

test('a failure is only its row’s, and a row without an outcome is asked for alone', async () => {
  const run = gather<string, string>({
    one: async (row) => {
      if (row === 'bad') throw new Error('bad')
      return `${row} alone`
    },
    several: async (rows) => {
      if (rows.includes('bad')) throw new Error('one of them is bad')
      return rows.map((row) => (row === 'locked' ? undefined : `${row} together`))
    },
  })
  const settled = await Promise.allSettled([run('a'), run('bad')])
  assert.deepEqual(
    settled.map((one) => (one.status === 'fulfilled' ? one.value : 'failed')),
    ['a alone', 'failed'],
  )
  assert.deepEqual(await Promise.all([run('a'), run('locked')]), ['a together', 'locked alone'])
})

test('of rows with one key the first goes with the others, and each later one alone after it', async () => {
  const asked: (readonly string[])[] = []
  const run = gather<string, string>({
    keyOf: (row) => row.slice(0, 1),
    one: async (row) => {
      asked.push([row])
      return `${row} alone`
    },
    several: async (rows) => {
      asked.push(rows)
      return rows.map((row) => `${row} together`)
    },
  })
  const outcomes = await Promise.all([run('a1'), run('b1'), run('a2'), run('a3')])
  assert.deepEqual(outcomes, ['a1 together', 'b1 together', 'a2 alone', 'a3 alone'])
  assert.deepEqual(asked, [['a1', 'b1'], ['a2'], ['a3']])
})

test('while the database is away all fail, and nothing is asked twice', async () => {
  const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  const run = gather<string, string>({
    one: () => assert.fail('it would be asked again'),
    several: () => Promise.reject(away),
  })
  for (const { status } of await Promise.allSettled([run('a'), run('b')])) assert.equal(status, 'rejected')
})
