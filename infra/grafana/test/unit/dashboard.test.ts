import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'vitest'

interface Panel {
  type: string
  title: string
  description?: string
  gridPos: { x: number; y: number; w: number; h: number }
  targets?: unknown[]
}

const file = new URL('../../../helm/spillway/files/dashboards/spillway.json', import.meta.url)
const { panels }: { panels: Panel[] } = JSON.parse(readFileSync(file, 'utf8'))

test('rows are questions, and every panel says what it tells', () => {
  assert.ok(panels.length > 20)
  for (const { type, title, description, targets = [] } of panels) {
    if (type === 'row') assert.match(title, /\?$/)
    else assert.ok(description && targets.length > 0, title)
  }
})

test('no panel lies on another one or beyond the grid', () => {
  const taken = new Set<string>()
  for (const { gridPos } of panels) {
    assert.ok(gridPos.x + gridPos.w <= 24)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.ok(!taken.has(`${x},${y}`), `two panels at ${x},${y}`)
        taken.add(`${x},${y}`)
      }
    }
  }
})
