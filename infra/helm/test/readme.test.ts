// The chart's README says what the chart does.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { readmeFile, readmeWithTable } from '../src/values-table.ts'

test('the table of values in the README is current', async () => {
  const readme = await readFile(readmeFile, 'utf8')
  assert.equal(readme, await readmeWithTable(), 'bring it up to date by: pnpm --filter @spillway/helm run readme')
})

test('while a key is replaced, every process opens what those of the step before and after seal', async () => {
  const readme = await readFile(readmeFile, 'utf8')
  // The value of the Secret at each step: the first key seals, all open.
  const steps = [...readme.matchAll(/^\d\. `(.+?)`/gm)].map(([, keys = '']) => keys.match(/k\d(?=:)/g) ?? [])
  assert.equal(steps.length, 3)
  const values = [['k1'], ...steps]
  assert.deepEqual(values.at(-1), ['k2'])
  for (const [step, after] of values.slice(1).entries()) {
    const before = values[step] ?? []
    assert.ok(after.includes(before[0] ?? ''), `step ${step + 1} does not open what is still sealed with ${before[0]}`)
    assert.ok(before.includes(after[0] ?? ''), `step ${step + 1} seals with ${after[0]}, which others do not have yet`)
  }
})
