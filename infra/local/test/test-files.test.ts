// What every test file keeps to, so that the runner sees all of its tests.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { findTestFiles } from '../src/testing/files.ts'

/** Where a file awaits something between its tests; undefined where it does not. */
function awaitAfterATest(file: string): string | undefined {
  const lines = readFileSync(file, 'utf8').split('\n')
  const first = lines.findIndex((line) => /^(?:test|describe|suite|it)\(/.test(line))
  const isAwait = (line: string) => /^(?!\s|\/\/|test|describe)(?:(?!=>|\bfunction\b).)*\bawait\b/.test(line)
  const late = lines.findIndex((line, n) => first >= 0 && n > first && isAwait(line))
  return late < 0 ? undefined : `${file}:${late + 1}`
}

// Once the tests that are known have ended, the runner ends the process of a file: those after such an await would be left out in silence.
test('no test file awaits anything at its top level after its first test', () => {
  const late = findTestFiles([]).map(awaitAfterATest)
  assert.ok(late.length > 100)
  assert.deepEqual(
    late.filter((place) => place !== undefined),
    [],
  )
})
