// The state of a run, sampled a few times a second: jobs, workers, and how long logins take.
import * as Plot from '@observablehq/plot'
import { quantile } from '@spillway/infra/rig/quantile'
import type { Redis } from 'ioredis'
import { parseHTML } from 'linkedom'
import type { KubernetesApi } from './api.ts'
import type { LoginResult } from './scenario/stage.ts'

export interface Sample {
  /** Seconds since the timeline began. */
  atS: number
  /** Jobs waiting or running. */
  depth: number
  /** Workers that the deployment should have, and those that are ready. */
  replicas: number
  ready: number
  /** Of the logins that ended in the last few seconds, in milliseconds; undefined without any. */
  p99Ms: number | undefined
}

export interface Mark {
  atS: number
  text: string
}

export interface TimelineOptions {
  api: KubernetesApi
  redis: Redis
  /** The keys that hold jobs: two lists and a sorted set. */
  keys: { waiting: string; deferred: string; active: string }
  /** The path of the deployment of the workers. */
  deployment: string
  results: LoginResult[]
}

const SAMPLE_MS = 250
const WINDOW_MS = 3_000

export interface DeploymentState {
  spec: { replicas: number }
  status: { replicas?: number; readyReplicas?: number }
}

export type Timeline = ReturnType<typeof startTimeline>

/** Samples until it is closed. The depth stays as it was while Redis is away. */
export function startTimeline({ api, redis, keys, deployment, results }: TimelineOptions) {
  const startedAt = performance.now()
  const samples: Sample[] = []
  const marks: Mark[] = []
  const now = (): number => (performance.now() - startedAt) / 1_000
  let sampling = false

  async function depth(): Promise<number> {
    const before = samples.at(-1)?.depth ?? 0
    if (redis.status !== 'ready') return before
    const counts = [redis.llen(keys.waiting), redis.zcard(keys.deferred), redis.llen(keys.active)]
    return await Promise.all(counts).then(
      (all) => all.reduce((sum, count) => sum + count, 0),
      () => before,
    )
  }

  async function sample(): Promise<void> {
    if (sampling) return
    sampling = true
    const read = Promise.all([api.call<DeploymentState>('GET', deployment), depth()])
    // A reading that fails is left out: the next one is near.
    await read.then(
      ([{ spec, status }, depth]) => {
        const ready = status.readyReplicas ?? 0
        samples.push({ atS: now(), depth, replicas: spec.replicas, ready, p99Ms: p99Lately(results) })
      },
      () => undefined,
    )
    sampling = false
  }

  const timer = setInterval(() => void sample(), SAMPLE_MS)
  return {
    samples,
    marks,
    /** Seconds since it began. */
    now,
    mark: (text: string): void => void marks.push({ atS: now(), text }),
    latest: () => samples.at(-1),
    close: (): void => clearInterval(timer),
  }
}

/** The 99th percentile of the logins that ended lately. */
function p99Lately(results: LoginResult[]): number | undefined {
  const since = performance.now() - WINDOW_MS
  const first = results.findLastIndex(({ endedAt }) => endedAt < since) + 1
  return percentile99(results.slice(first))
}

/** The 99th percentile of the time that logins took, in milliseconds; undefined without any. */
export function percentile99(results: LoginResult[]): number | undefined {
  return quantile(
    results.map(({ startedAt, endedAt }) => endedAt - startedAt),
    0.99,
  )
}

// A timeline as a drawing by Observable Plot: the queue, the workers and the wait over the same seconds.

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
