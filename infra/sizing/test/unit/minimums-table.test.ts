// The cost that a site should choose: the pages of sizing and of the chart have the figures of figures.json.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { withParts } from '@spillway/infra/test/settings-table'
import { test } from 'vitest'
import { figures } from '../../src/figures.ts'
import { loginsBy, policyInWords } from '../../src/minimums.ts'

function table(): string {
  const { machine, slots, measuredAt, costs } = figures.minimums
  const logins = loginsBy(costs, { slots, coresPerWorker: 1, turnaroundMs: figures.turnaroundMs })
  const rows = logins.map(({ policy, perSecond, workerMib }, n) => {
    const cells = [policyInWords(policy), `${costs[n]?.fullMs.toFixed(1)} ms`, perSecond.toFixed(0), `${workerMib} MiB`]
    return `| ${cells.join(' | ')} |`
  })
  const heads = [
    `${machine}; ${measuredAt}`,
    'a hash, every slot busy',
    `logins a second of ${slots} cores`,
    'memory of a worker of 1 core',
  ]
  return [`| ${heads.join(' | ')} |`, '|---|--:|--:|--:|', ...rows].join('\n')
}

test.each(['../../README.md', '../../../helm/spillway/README.md'])('%s has the figures', async (name) => {
  const page = new URL(name, import.meta.url)
  const text = await readFile(page, 'utf8')
  const current = withParts(text, { minimums: table() })
  if (process.env.SPILLWAY_WRITE_PAGES === 'true') await writeFile(page, current)
  else
    assert.equal(text, current, 'bring it up to date by: SPILLWAY_WRITE_PAGES=true npx --yes pnpm test minimums-table')
})
