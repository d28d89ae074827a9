// What is said of a storm, by what was measured, and how it is drawn.
import assert from 'node:assert/strict'
import { quantile } from '@spillway/infra/rig/quantile'
import { test } from 'vitest'
import { advice } from '../../storm/src/advice.ts'
import { renderReport } from '../../storm/src/report.ts'
import type { PhaseFigures } from '../../storm/src/result.ts'
import type { ProbeResult, StormResult } from '../../storm/src/storm.ts'
import { inWords } from '../../storm/src/terminal.ts'
import { sentences } from '../../storm/src/words.ts'

const phase = (p99Ms: number | undefined): PhaseFigures => {
  return { asked: p99Ms === undefined ? 0 : 400, lost: 0, p50Ms: p99Ms, p99Ms, maxMs: p99Ms }
}

function probe(calmMs: number, stormMs: number | undefined, more: Partial<ProbeResult> = {}): ProbeResult {
  const figures = { calm: phase(calmMs), storm: phase(stormMs), after: phase(calmMs) }
  return { name: 'GET /a', ...figures, calmAgainMs: 400, slowest: [{ second: -1, ms: calmMs }], ...more }
}

function result(probes: ProbeResult[], more: Partial<StormResult> = {}): StormResult {
  return {
    ...{ format: 1, startedAt: '2000-01-01T00:00:00.000Z', interrupted: false, target: 'http://127.0.0.1:3000' },
    login: 'POST /login',
    settings: { users: 100, durationS: 10, probesPerSecond: 40, p99Ms: 100, timeoutS: 10, calmS: 5, afterS: 10 },
    ...{ stormS: 10, loginsS: 13.9 },
    logins: logins({ success: 300 }),
    probes,
    generator: { corePercent: 3, lateP99Ms: 2 },
    ...more,
  }
}

function logins(counts: Partial<StormResult['logins']>): StormResult['logins'] {
  const none = { success: 0, refused: 0, lost: 0, other: 0, perSecond: 0, reasons: {} }
  return { ...none, p50Ms: undefined, p99Ms: undefined, ...counts }
}

const advised = (of: StormResult): string =>
  advice(of)
    .map(({ text, code = [] }) => [text, ...code].join(' '))
    .join('\n')

test('quantiles are values that were measured, by nearest rank', () => {
  const values = Array.from({ length: 100 }, (_, index) => 100 - index)
  assert.deepEqual([quantile(values, 0.5), quantile(values, 0.99), quantile(values, 1)], [50, 99, 100])
  assert.deepEqual([quantile([7], 0.01), quantile([10, 9], 0.99), quantile([], 0.5)], [7, 10, undefined])
})

const said = (of: StormResult) => sentences(of).join(' ')

test.each([
  [100, /GET \/a took 100 ms at p99 in the storm: within the 100 ms/],
  [101, /GET \/a took 101 ms at p99 in the storm: more than the 100 ms/],
])('a figure at the limit is within it, one above is not: %i ms', (stormMs, sentence) => {
  assert.match(said(result([probe(3, stormMs)])), sentence)
})

test('an import is named only where a probe that was quick became slow', () => {
  assert.match(advised(result([probe(3, 2_410)])), /^GET \/a kept within the limit until people logged in/)
  for (const other of [probe(3, 90), probe(150, 2_410), probe(3, undefined)]) {
    assert.doesNotMatch(advised(result([other])), /import/)
  }
})

const rest = { name: 'GET /b' }
const ended = (how: 'refused' | 'lost' | 'other', reasons: Record<string, number>) =>
  result([], { logins: logins({ [how]: 9, reasons }) })
const [slow, quick] = [probe(3, 2_410), probe(3, 5, rest)]
test.each<[what: string, StormResult, says: RegExp, not: RegExp]>([
  [
    'one of two probes is slow',
    result([slow, quick]),
    /GET \/b stayed quick.*libuv's pool.*client\/bcrypt'/,
    /bcryptjs/,
  ],
  ['both are slow', result([slow, probe(3, 900, rest)]), /event loop.*client\/bcryptjs'/, /libuv/],
  ['there is one', result([slow]), /One probe does not show why.*client\/bcrypt'.*bcryptjs'/, /libuv/],
  ['a limit refuses', ended('refused', { 429: 9 }), /x-forwarded-for/, /workers/],
  ['overload refuses', ended('refused', { 503: 8, 429: 1 }), /add workers/, /for:/],
  ['tickets are given', ended('refused', { 202: 9 }), /redeems no tickets/, /limit/],
  ['time runs out', ended('lost', { timeout: 9 }), /waited for their hash/, /closed/],
  [
    'connections break',
    ended('lost', { 200: 90, ECONNRESET: 8, timeout: 1 }),
    /most by ECONNRESET.*closed or refused connections/,
    /workers/,
  ],
  ['it fails', ended('other', { 500: 9 }), /most of them 500\. .*its log/, /expect\./],
  ['users are missing', ended('other', { 401: 9 }), /\(--users\)/, /--expect/],
  ['it redirects', ended('other', { 302: 9 }), /name it with --expect/, /log says/],
])('the advice is of what was found: %s', (_, of, says, not) => {
  assert.match(advised(of).replaceAll('\n', ' '), says)
  assert.doesNotMatch(advised(of), not)
})

test('that nothing has to change is said only of probes that were asked, while logins succeeded', () => {
  assert.match(advised(result([probe(3, 90)])), /^Every probe stayed within 100 ms while 100 users logged in/)
  const without = [
    result([]),
    result([probe(3, 90), probe(3, 200)]),
    result([probe(3, 90)], { logins: logins({ refused: 300 }) }),
    result([probe(3, 90)], { logins: logins({ success: 1, lost: 1 }) }),
    result([probe(3, 90)], { logins: logins({ other: 300 }) }),
  ]
  for (const each of without) assert.doesNotMatch(advised(each), /nothing has to change/)
})

test.each([
  [2_300, /the probes were as quick as before 2\.3 s after the last login/i],
  [0, /As soon as the last login had ended, the probes were as quick as before\./],
  [undefined, /GET \/b had not become as quick as before/],
])('it is told when the last probe was calm again, or that it did not become calm: %s', (calmAgainMs, sentence) => {
  const first = probe(3, 90, { calmAgainMs: 0 })
  assert.match(said(result([first, probe(3, 90, { name: 'GET /b', calmAgainMs })])), sentence)
})

test('that the program itself was late is said where it matters', () => {
  const late = (lateP99Ms: number) => sentences(result([probe(3, 90)], { generator: { corePercent: 99, lateP99Ms } }))
  assert.doesNotMatch(late(24).join(' '), /late/)
  assert.match(late(30).join(' '), /This program itself sent probes up to 30 ms late/)
})

test('a storm that was interrupted before a login had ended claims nothing', () => {
  const early = result([probe(3, undefined)], { interrupted: true, logins: logins({}) })
  assert.deepEqual([sentences(early), advice(early)], [['The storm was interrupted before a login had ended.'], []])
})

test('the terminal has lines that fit, and a table', () => {
  const lines = inWords(result([probe(3, 2_410, { name: 'GET /reports/weekly' })])).split('\n')
  assert.ok(
    lines.every((line) => line.length <= 100),
    lines.join('\n'),
  )
  assert.match(lines.join('\n'), /^GET \/reports\/weekly +3\.0 ms +3\.0 ms +2,410 ms +2,410 ms +3\.0 ms +3\.0 ms$/m)
})

test('the report needs no network and no script, and holds what was given as text', () => {
  const html = renderReport(result([probe(3, 2_410, { name: 'GET /<script>' })]))
  assert.doesNotMatch(html, /<script|<link|src=|@import|url\(/)
  assert.match(html, /GET \/&#60;script&#62;/)
  assert.match(html, /<svg .*the storm: 14 s.*limit: 100 ms/s)
  assert.doesNotMatch(renderReport(result([])), /<svg/)
})
