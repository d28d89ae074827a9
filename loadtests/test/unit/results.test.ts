// The report of made-up results: each plot has its bars, and repeats count by their medians.
import assert from 'node:assert/strict'
import { type Results, type Run, type ScenarioResult, summarize } from '@spillway/loadtests/results'
import { runScenarios } from '@spillway/loadtests/run'
import { describe, test } from 'vitest'
import { Accounts } from '../../load/accounts.ts'
import { outcomes, Tally } from '../../measure/tally.ts'
import { renderReport } from '../../report/report.ts'

function resultsOf(...scenarios: ScenarioResult[]): Results {
  return {
    startedAt: '2000-01-01T00:00:00.000Z',
    interrupted: false,
    machine: {
      processor: 'a processor',
      cores: 2,
      memoryGib: 1,
      system: 'a system',
      node: 'v20.19.0',
      engine: 'packages',
      pinned: false,
    },
    commit: 'abc1234',
    repeat: 2,
    bareHashMs: { argon2id: 20, bcrypt: 70 },
    scenarios,
  }
}

const run = (contender: string, figures: Record<string, number>, more: Partial<Run> = {}): Run => ({
  contender,
  variant: 'argon2id',
  figures,
  ...more,
})

/** Two runs of each, as far from their mean as from each other: none of them is the typical one. */
function twice(name: string, contenders: readonly string[], figures: Record<string, number>, more?: Partial<Run>) {
  return {
    name,
    runs: [0.8, 1.2].flatMap((times) => contenders.map((each) => run(each, scaled(figures, times), more))),
  }
}

const scaled = (figures: Record<string, number>, times: number) =>
  Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, value * times]))

const waits = Object.fromEntries(
  ['p', 'neighbourP', 'healthzP'].flatMap((p) => [
    [`${p}50Ms`, 10],
    [`${p}99Ms`, 100],
  ]),
)
const ends = Object.fromEntries(outcomes.map((outcome) => [`${outcome}Percent`, 20]))
const three = ['in-process', 'piscina', 'spillway']

/** The plots of a report, by what they are called: how many marks each has that can be seen. */
function plotsOf(result: ScenarioResult) {
  const figures = renderReport(resultsOf(result)).matchAll(/<figure><h4>(.*?)<\/h4>(.*?)<\/figure>/gs)
  return new Map(
    Array.from(figures, ([, title = '', svg = '']) => {
      const marks = (of: string, mark: RegExp) => {
        const groups = svg.match(new RegExp(`<g [^>]*aria-label="${of}".*?</g>`, 'gs')) ?? []
        return groups.flatMap((group) => Array.from(group.matchAll(mark)))
      }
      const bars = marks('bar', /<rect[^>]* width="([\d.]+)"/g).filter(([, width]) => Number(width) > 0)
      // Facets nest their groups.
      const dots = Array.from(svg.matchAll(/<circle/g))
      return [title, { bars: bars.length, dots: dots.length, lines: marks('line', /<path/g).length }]
    }),
  )
}

describe('each plot has a mark for each contender that was measured twice:', () => {
  test('a hundred users', () => {
    const plots = plotsOf(twice('login-100', three, { perSecond: 50, ...waits }))
    assert.equal(plots.get('Logins a second, argon2id')?.bars, 3)
    assert.equal([...plots].find(([title]) => title.startsWith('Logins, and'))?.[1].dots, 9)
    assert.equal(plots.size, 2)
  })

  test('a spike', () => {
    const series = [1, 2, 3].map((second) => ({ second, open: 10 * second }))
    const plots = plotsOf(twice('spike', ['in-process', 'spillway'], ends, { series }))
    assert.equal(plots.get('How requests ended')?.bars, 10)
    assert.equal(plots.get('Logins that wait, over time')?.lines, 2)
  })

  test('one user, and the hash itself', () => {
    const idle = plotsOf(twice('idle', three, { overheadMs: 2 }))
    assert.equal(idle.get('Median of a login, less the bare hash')?.bars, 3)
    const variants = ['argon2id, every processor', 'bcrypt, every processor', 'bcrypt, alone']
    const runs = variants.map((variant) => run('worker/engine', { perSecond: 100 }, { variant }))
    assert.equal(plotsOf({ name: 'engines', runs }).get('Hashes a second, on every processor')?.bars, 2)
  })
})

test('repeats count by their medians, moment by moment, without those that failed', () => {
  const runs = [2, 4, 9].map((value) => run('spillway', { perSecond: value }, { series: [{ second: 1, open: value }] }))
  const failed = run('spillway', {}, { failure: 'it broke' })
  const [summary] = summarize({ name: 'spike', runs: [...runs, failed] })
  assert.deepEqual([summary?.figures.perSecond, summary?.series], [4, [{ second: 1, open: 4 }]])
})

test('a request that timed out is in the percentiles, a refusal is not', () => {
  const tally = new Tally()
  tally.record('ok', 100)
  tally.record('busy', 1)
  tally.record('timeout', 10_000)
  assert.deepEqual(tally.waitedMs, [100, 10_000])
  assert.equal(tally.share('timeout', 'error'), 100 / 3)
})

test('an interruption keeps what was measured before it, and a failure is a result', async () => {
  const interruption = new AbortController()
  const measure = async () => ({ figures: { perSecond: 1 } })
  const plan = () => [
    { contender: 'first', variant: '', measure },
    { contender: 'second', variant: '', measure: () => Promise.reject(new Error('no server')) },
    {
      contender: 'third',
      variant: '',
      measure: () => {
        interruption.abort()
        return measure()
      },
    },
  ]
  const results = resultsOf()
  const setting = {
    databaseUrl: '',
    redisUrl: '',
    accounts: new Accounts(''),
    contenders: undefined,
    durationS: undefined,
    users: undefined,
    warmUpMs: 0,
    bareHashMs: results.bareHashMs,
  }
  await runScenarios([{ name: 'idle', title: '', question: '', plan }], setting, results, interruption.signal)
  const ended = results.scenarios[0]?.runs.map(({ contender, failure }) => [contender, failure])
  assert.deepEqual(ended, [
    ['first', undefined],
    ['second', 'no server'],
  ])
})
