// The page of promises has every scenario, and says what was last found.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { test } from 'vitest'
import { outdated, pageFile, readRecord, scenariosOfRows, withFigures } from '../../chaos/record.ts'
import { scenarios } from '../../chaos/scenarios.ts'

const names = [...scenarios.map(({ name }) => name), 'soak']
const page = await readFile(pageFile, 'utf8')

test('every scenario of chaos has one row in the page of promises, and every row has a scenario', () => {
  const rows = scenariosOfRows(page, names)
  assert.deepEqual(
    rows.filter((row) => row.length === 0),
    [],
  )
  assert.deepEqual(rows.flat().sort(), names.toSorted())
})

test('the page says what was last found, and nothing is kept of scenarios that are gone', async () => {
  const record = await readRecord()
  assert.deepEqual(
    Object.keys(record).filter((name) => !names.includes(name)),
    [],
  )
  assert.equal(page, withFigures(page, record))
})

const isRepository = existsSync(new URL('../../../.git', import.meta.url))

test.skipIf(!isRepository)(
  'every record is of a commit since which neither its scenario nor the stage changed',
  async () => {
    assert.deepEqual(outdated(await readRecord()), [], 'measure them again with --record, or remove them')
    const kept = { commit: 'HEAD', requests: 1, failed: 0, notes: [], broken: [] }
    const last = ['log', '--format=%H', '-1', '--', 'loadtests/chaos/scenarios/crowd.ts']
    const first = execFileSync('git', last, { encoding: 'utf8' }).trim()
    assert.deepEqual(outdated({ crowd: kept }), [])
    assert.deepEqual(outdated({ crowd: { ...kept, commit: `${first}^` }, clock: { ...kept, commit: 'unknown' } }), [
      'crowd',
      'clock',
    ])
  },
)

test('the row of several scenarios adds up requests and shows the worst delay', () => {
  const rows = '| kept | cut | `redis-…` | old | old |\n| held | off | `clock` | old | old |\n'
  const kept = { commit: 'abc1234', requests: 600, failed: 0, worstExtraMs: 900, notes: ['unseen'], broken: [] }
  const record = { 'redis-cut': kept, 'redis-full': { ...kept, requests: 500, worstExtraMs: 1_100, failed: 1 } }
  assert.equal(
    withFigures(rows, record),
    [
      '| kept | cut | `redis-…` | 1 of 1,100 requests failed; worst extra delay 1.10 s; 2 scenarios | `abc1234` |',
      '| held | off | `clock` | not measured since it changed | |\n',
    ].join('\n'),
  )
})
