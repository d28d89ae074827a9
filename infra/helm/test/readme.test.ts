// The chart's README says what the chart does.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { readmeFile, readmeWithTable } from '../src/values-table.ts'

test('the table of values in the README is current', async () => {
  const readme = await readFile(readmeFile, 'utf8')
  assert.equal(readme, await readmeWithTable(), 'bring it up to date by: pnpm --filter @spillway/helm run readme')
})
