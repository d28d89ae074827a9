// A timeline as a drawing: the depth of the queue, the workers, and the wait, one above the other over the same seconds.
import type { Sample, Timeline } from './timeline.ts'

const WIDTH = 880
const LEFT = 64
const RIGHT = 24
const PANEL = 120
const GAP = 44
const TOP = 72

interface Line {
  name: string
  /** On light and on dark. */
  colors: [string, string]
  /** Undefined where there is nothing to draw. */
  value(sample: Sample): number | undefined
  /** A number that holds until the next one is drawn as steps. */
  stepped?: boolean
}

interface Panel {
  title: string
  lines: Line[]
}

const panels: Panel[] = [
  {
    title: 'jobs, waiting and running',
    lines: [{ name: 'jobs', colors: ['#2f6fb2', '#6cb0f5'], value: ({ depth }) => depth }],
  },
  {
    title: 'workers',
    lines: [
      { name: 'asked for', colors: ['#c2571a', '#f0883e'], value: ({ replicas }) => replicas, stepped: true },
      { name: 'ready', colors: ['#3a8a4d', '#56d364'], value: ({ ready }) => ready, stepped: true },
    ],
  },
  {
    title: 'time to log in, 99th percentile of the last 3 s, in seconds',
    lines: [
      {
        name: 'p99',
        colors: ['#7a4fa3', '#c297ff'],
        value: ({ p99Ms }) => (p99Ms === undefined ? undefined : p99Ms / 1_000),
      },
    ],
  },
]

const classOf = ({ name }: Line): string => name.replaceAll(' ', '-')

/** What gives each line its color, and its name in the legend the same. */
function colorsOf(scheme: 0 | 1): string {
  const rules = panels
    .flatMap(({ lines }) => lines)
    .map((line) => {
      const color = line.colors[scheme]
      return `path.${classOf(line)}{stroke:${color}}text.${classOf(line)}{fill:${color}}`
    })
  return rules.join('')
}

/** Draws a timeline as one SVG that reads on light and on dark. */
export function drawTimeline({ samples, marks }: Timeline): string {
  const height = TOP + panels.length * (PANEL + GAP) + 16
  const startS = Math.min(...samples.map(({ atS }) => atS), 0)
  const endS = Math.max(...samples.map(({ atS }) => atS), 1)
  const x = (atS: number): number => LEFT + ((atS - startS) / (endS - startS)) * (WIDTH - LEFT - RIGHT)
  const tops = panels.map((_, index) => TOP + index * (PANEL + GAP))
  const bottom = TOP + panels.length * (PANEL + GAP) - GAP
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12" role="img">`,
    '<title>Jobs, workers, and the time to log in over the seconds of a spike</title>',
    '<style>text{fill:#333}.axis{stroke:#999;stroke-width:1}.grid{stroke:#ddd;stroke-width:1}.mark{stroke:#888;stroke-dasharray:3 3}',
    colorsOf(0),
    '@media (prefers-color-scheme: dark){text{fill:#ccc}.grid{stroke:#444}.axis{stroke:#777}',
    `${colorsOf(1)}}</style>`,
  ]
  for (const [index, mark] of marks.entries()) {
    const at = x(mark.atS).toFixed(1)
    // Three rows, because the first ones may be close together.
    const row = 14 + (index % 3) * 14
    for (const top of tops) parts.push(`<line class="mark" x1="${at}" x2="${at}" y1="${top}" y2="${top + PANEL}"/>`)
    parts.push(`<text x="${at}" y="${row}" text-anchor="start">${mark.text} ${mark.atS.toFixed(1)} s</text>`)
  }
  for (const [index, panel] of panels.entries()) parts.push(drawPanel(panel, samples, tops[index] ?? 0, x))
  for (let second = 0; second <= endS; second += 30)
    parts.push(`<text x="${x(second).toFixed(1)}" y="${bottom + 18}" text-anchor="middle">${second} s</text>`)
  parts.push('</svg>')
  return `${parts.join('\n')}\n`
}

function drawPanel({ title, lines }: Panel, samples: Sample[], top: number, x: (atS: number) => number): string {
  const most = Math.max(1, ...samples.flatMap((sample) => lines.map(({ value }) => value(sample) ?? 0)))
  const y = (value: number): number => top + PANEL - (value / most) * PANEL
  const parts = [`<text x="${LEFT}" y="${top - 6}" font-weight="600">${title}</text>`]
  for (const value of [0, most / 2, most]) {
    parts.push(`<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(value)}" y2="${y(value)}"/>`)
    const label = most < 10 && !Number.isInteger(most / 2) ? value.toFixed(1) : Math.round(value)
    parts.push(`<text x="${LEFT - 8}" y="${y(value) + 4}" text-anchor="end">${label}</text>`)
  }
  for (const [index, line] of lines.entries()) {
    parts.push(`<path class="${classOf(line)}" fill="none" stroke-width="1.6" d="${path(line, samples, x, y)}"/>`)
    if (lines.length > 1)
      parts.push(
        `<text class="${classOf(line)}" x="${WIDTH - RIGHT - 70 * (lines.length - index)}" y="${top - 6}">${line.name}</text>`,
      )
  }
  parts.push(`<line class="axis" x1="${LEFT}" x2="${LEFT}" y1="${top}" y2="${top + PANEL}"/>`)
  return parts.join('\n')
}

function path(
  { value, stepped }: Line,
  samples: Sample[],
  x: (atS: number) => number,
  y: (value: number) => number,
): string {
  let drawn = ''
  for (const sample of samples) {
    const found = value(sample)
    if (found === undefined) continue
    const [atX, atY] = [x(sample.atS).toFixed(1), y(found).toFixed(1)]
    if (drawn === '') drawn = `M${atX} ${atY}`
    else drawn += stepped ? `H${atX}V${atY}` : `L${atX} ${atY}`
  }
  return drawn
}
