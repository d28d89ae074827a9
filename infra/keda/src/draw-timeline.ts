// A timeline as a drawing by Observable Plot: the queue, the workers and the wait over the same seconds.
import * as Plot from '@observablehq/plot'
import { parseHTML } from 'linkedom'
import type { Mark, Sample, Timeline } from './timeline.ts'

const { document } = parseHTML('<!doctype html><html><body></body></html>')

const WIDTH = 880
const PANEL_HEIGHT = 170
/** Of a row of names: three rows, because marks may be close together, and one for the title of the panel below them. */
const ROW_HEIGHT = 14
const NAMES_HEIGHT = 4 * ROW_HEIGHT

interface Panel {
  title: string
  /** Each line by its name; undefined where nothing was measured. */
  lines: Record<string, (sample: Sample) => number | undefined>
  /** Numbers that hold until they change. */
  stepped?: boolean
}

const panels: Panel[] = [
  { title: 'jobs, waiting and running', lines: { jobs: ({ depth }) => depth } },
  { title: 'workers', lines: { desired: ({ replicas }) => replicas, ready: ({ ready }) => ready }, stepped: true },
  {
    title: 'time to log in, 99th percentile of the last 3 s, in seconds',
    lines: { p99: ({ p99Ms }) => p99Ms && p99Ms / 1_000 },
  },
]

/** The colour of each line, on light and on dark. */
const style = `text{fill:#333}.jobs{color:#2f6fb2}.desired{color:#c2571a}.ready{color:#3a8a4d}.p99{color:#7a4fa3}
@media(prefers-color-scheme:dark){text{fill:#ccc}.jobs{color:#6cb0f5}.desired{color:#f0883e}.ready{color:#56d364}.p99{color:#c297ff}}
.desired text,.ready text{fill:currentColor}`

/** Draws a timeline as one SVG that is legible on light and on dark. */
export function drawTimeline({ samples, marks }: Timeline): string {
  const names = marks.map(({ text, atS }, index) => ({ atS, text: `${text} ${atS.toFixed(1)} s`, row: index % 3 }))
  const height = panels.length * PANEL_HEIGHT + NAMES_HEIGHT
  const drawn = panels.map((panel, index) => {
    const svg = drawPanel(panel, samples, marks, index === 0 ? names : [])
    svg.setAttribute('y', String(NAMES_HEIGHT + index * PANEL_HEIGHT))
    svg.setAttribute('overflow', 'visible')
    return svg.outerHTML
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img">
<title>Jobs, workers, and the time to log in over the seconds of a spike</title>
<style>${style}</style>
${drawn.join('\n')}
</svg>
`
}

function drawPanel(
  { title, lines, stepped = false }: Panel,
  samples: Sample[],
  marks: Mark[],
  names: { atS: number; text: string; row: number }[],
): ReturnType<typeof Plot.plot> {
  const curve = stepped ? 'step-after' : 'linear'
  const measured = Object.entries(lines).map(([name, value]) => ({
    name,
    data: samples
      .map((sample) => ({ atS: sample.atS, value: value(sample) }))
      .filter((point) => point.value !== undefined),
  }))
  return Plot.plot({
    document,
    width: WIDTH,
    height: PANEL_HEIGHT,
    className: 'plot',
    x: { domain: [samples[0]?.atS ?? 0, samples.at(-1)?.atS ?? 1], label: 'seconds', tickSize: 0 },
    y: { label: title, grid: true, ticks: 3, tickSize: 0, zero: true },
    style: { fontSize: '12px' },
    marks: [
      Plot.ruleX(marks, { x: 'atS', strokeDasharray: '3 3', strokeOpacity: 0.5 }),
      ...measured.flatMap(({ name, data }, index) => [
        Plot.line(data, { x: 'atS', y: 'value', curve, className: name, stroke: 'currentColor' }),
        Plot.text(measured.length > 1 ? [name] : [], {
          className: name,
          frameAnchor: 'top-right',
          dx: -80 * index,
          dy: -ROW_HEIGHT,
        }),
      ]),
      ...[0, 1, 2].map((row) =>
        Plot.text(
          names.filter((name) => name.row === row),
          { x: 'atS', text: 'text', frameAnchor: 'top', textAnchor: 'start', dy: row * ROW_HEIGHT - NAMES_HEIGHT },
        ),
      ),
    ],
  })
}
