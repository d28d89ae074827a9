import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'vitest'
import { dashboardFile, dashboardJson, layOut, rows } from '../../src/dashboard.ts'

test('the JSON is what the rows make: else run SPILLWAY_WRITE_PAGES=true npx --yes pnpm test dashboard.test', () => {
  if (process.env.SPILLWAY_WRITE_PAGES === 'true') writeFileSync(dashboardFile, dashboardJson())
  assert.equal(readFileSync(dashboardFile, 'utf8'), dashboardJson())
})

/** All that a panel of dashboard.yaml may have: a misspelt field would be passed over in silence. */
const fields = ['title', 'description', 'type', 'unit', 'width', 'stacked', 'thresholds', 'floor', 'queries']

test('rows are questions, and every panel says what it tells, in fields that are known', () => {
  for (const { title, panels } of rows) {
    assert.match(title, /\?$/)
    for (const panel of panels) {
      const { title, description, queries } = panel
      assert.ok(description && queries.length > 0, title)
      assert.deepEqual(
        Object.keys(panel).filter((field) => !fields.includes(field)),
        [],
        title,
      )
    }
  }
})

test('no panel lies on another one or beyond the grid', () => {
  const taken = new Set<string>()
  for (const panel of layOut()) {
    const { gridPos } = Object.assign({ gridPos: { x: 0, y: 0, w: 0, h: 0 } }, panel)
    assert.ok(gridPos.x + gridPos.w <= 24)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.ok(!taken.has(`${x},${y}`), `two panels at ${x},${y}`)
        taken.add(`${x},${y}`)
      }
    }
  }
})
