// A timeline as a drawing.
import assert from 'node:assert/strict'
import { test } from 'vitest'
import { drawTimeline, type Timeline } from '../../src/timeline.ts'

const timeline: Timeline = {
  samples: [
    { atS: 0, depth: 0, replicas: 1, ready: 1, p99Ms: undefined },
    { atS: 0.25, depth: 12, replicas: 1, ready: 1, p99Ms: 260 },
    { atS: 0.5, depth: 40, replicas: 8, ready: 1, p99Ms: 1_250 },
    { atS: 0.75, depth: 40, replicas: 8, ready: 1, p99Ms: 1_250 },
  ],
  marks: [{ atS: 0.3, text: 'decided' }],
  now: () => 1,
  mark() {},
  latest: () => undefined,
  close() {},
}

test('the drawing shows every mark, and leaves out what was not measured', () => {
  const svg = drawTimeline(timeline)
  assert.match(svg, /decided 0\.3 s/)
  assert.doesNotMatch(svg, /NaN|undefined|Infinity/)
  assert.equal(svg.match(/<path /g)?.length, 4)
})
