// A timeline as text: a line for each change in what matters, and one every few seconds.
import type { Timeline } from './timeline.ts'

const EVERY_S = 5

/** A table with the marks beside the samples that they belong to. */
export function printTimeline({ samples, marks }: Timeline): string {
  const lines = ['      s  depth  replicas  ready   p99']
  let last = { atS: Number.NEGATIVE_INFINITY, replicas: -1, ready: -1 }
  let nextMark = 0
  for (const { atS, depth, replicas, ready, p99Ms } of samples) {
    const texts: string[] = []
    for (let mark = marks[nextMark]; mark && mark.atS <= atS; nextMark += 1, mark = marks[nextMark])
      texts.push(mark.text)
    const changed = replicas !== last.replicas || ready !== last.ready
    if (!changed && texts.length === 0 && atS < last.atS + EVERY_S) continue
    last = { atS, replicas, ready }
    const p99 = p99Ms === undefined ? '-' : `${(p99Ms / 1_000).toFixed(2)} s`
    const cells = [
      atS.toFixed(1).padStart(7),
      String(depth).padStart(6),
      String(replicas).padStart(9),
      String(ready).padStart(6),
    ]
    lines.push(`${cells.join(' ')}  ${p99.padStart(7)}  ${texts.join(', ')}`.trimEnd())
  }
  return lines.join('\n')
}
