import assert from 'node:assert/strict'
import { UserError } from '@spillway/infra/processes/command-line'
import { describe, test } from 'vitest'
import { Tally } from '../../measure/tally.ts'
import { renderReport, tablesInLines } from '../../report/report.ts'
import type { Scenario } from '../../scenarios/scenario.ts'
import { parseOptions } from '../../src/options.ts'
import { median, type Results, type Run } from '../../src/results.ts'
import { keptOf, resultsOf, settingOf } from '../results-of.ts'

describe('figures', () => {
  test('a request that timed out is in the percentiles, a refusal is not', () => {
    const tally = new Tally()
    tally.record('ok', 100, 0)
    tally.record('busy', 1, 0)
    tally.record('timeout', 10_000, 1)
    assert.deepEqual(tally.waitedMs, [100, 10_000])
    assert.equal(tally.share('timeout', 'error'), 100 / 3)
    assert.deepEqual(
      tally.bySecond.map(({ ok, timeout }) => [ok, timeout]),
      [
        [1, 0],
        [0, 1],
      ],
    )
  })

  test('repeats are drawn together as their median', () => {
    assert.deepEqual([[5, 1, 3], [4, 1], []].map(median), [3, 2.5, undefined])
  })
})

// Each begins with half a second in which the machine is looked at.
describe.concurrent('a run', () => {
  test('a contender that fails to start is a result with its reason, and in the report', async () => {
    const kept = await runsOf([
      measurement('broken', () => Promise.reject(new Error('ended before it was ready'))),
      working,
    ])
    assert.deepEqual(
      kept.runs.map(({ failure }) => failure),
      ['ended before it was ready', undefined],
    )
    assert.match(renderReport(results(kept.runs)), /broken, argon2id: ended before it was ready/)
  })

  test('measurements from before an interruption are kept, and the interrupted one is not', async () => {
    const interruption = new AbortController()
    const brokenOff = measurement('second', async () => {
      interruption.abort()
      return { figures: { perSecond: 1 } }
    })
    const kept = await runsOf([working, brokenOff, working], interruption.signal)
    assert.deepEqual(
      kept.runs.map(({ contender }) => contender),
      ['first'],
    )
  })
})

test('a run ends with the figures of its report, as a table', () => {
  const runs = [11.2, 11.6].map((bareHashMs) => run({ bareHashMs, overheadMs: 2 }))
  const lines = tablesInLines(results([...runs, { ...run({ p50Ms: 1_234 }), contender: 'in-process' }])).split('\n')
  assert.deepEqual(lines, [
    '',
    'One user, nobody else',
    '                   Median of a login   Bare hash   Over the hash',
    '  Spillway                         –     11.4 ms            2 ms',
    '  In the handler            1,234 ms           –               –',
  ])
  assert.equal(tablesInLines(results([run({})])), '')
})

test.each([
  [52, 1.04, 'siblings: hardware threads that share cores'],
  [98, 1.96, 'cores of their own'],
])('whether processors are siblings is told by two threads against one: %s', (all, times, are) => {
  const [one, both] = ['full batches', 'every processor'].map((load) => {
    return {
      ...run({ perSecond: load === 'full batches' ? 50 : all }),
      contender: 'worker/engine',
      variant: `pbkdf2, ${load}`,
    }
  })
  assert.ok(one && both)
  const settings = { processors: 2, 'hardware threads of a core': 1 }
  const engines = resultsOf([{ name: 'engines', settings, runs: [one, both] }])
  const sentence = `The 2 processors are ${are}. Together they hash ${times.toFixed(2)} times as much as one of them.`
  for (const text of [tablesInLines(engines), renderReport(engines)]) assert.ok(text.includes(sentence), text)
})

describe('the command line', () => {
  const wrong: [string[], RegExp][] = [
    [['nothing'], /There is no scenario "nothing": choose from login-100,/],
    [['--contender', 'nobody'], /There is no contender "nobody": choose from in-process,/],
    [['--duration', 'long'], /--duration takes a number greater than 0, not "long"/],
    [['--repeat', '0'], /--repeat takes a whole number of at least 1/],
    [['--fast'], /see "pnpm load --help"/],
    [['ramp', '--target', 'http://127.0.0.1:3000'], /--target is for "pnpm load spike" alone/],
    [['spike', '--target', 'http://127.0.0.1:3000', '--rate', '9999'], /--rate takes at most 2000 with a --target/],
    [['spike', '--beyond-loopback'], /need a --target/],
  ]
  for (const [args, sentence] of wrong) {
    test(`refuses ${args.join(' ')} in one sentence`, () => {
      assert.throws(
        () => parseOptions(args),
        (error) => error instanceof UserError && sentence.test(error.message) && !error.message.includes('\n'),
      )
    })
  }
})

const working = measurement('first', async () => ({ figures: { perSecond: 2 } }))

function measurement(contender: string, measure: () => Promise<{ figures: Record<string, number> }>) {
  return { contender, variant: 'argon2id', placement: 'apart' as const, measure }
}

function runsOf(plan: ReturnType<Scenario['plan']>, signal?: AbortSignal) {
  const idle = { name: 'idle', title: '', question: '', durationS: 1, settings: () => ({}), plan: () => plan }
  return keptOf(idle, settingOf(), signal)
}

function run(figures: Record<string, number>): Run {
  return { contender: 'spillway', variant: 'argon2id', figures, series: {} }
}

function results(runs: Run[]): Results {
  return resultsOf([{ name: 'idle', settings: {}, runs }])
}
