// The sections of the report: for each scenario the figures of its table, and its charts.
import type { Html } from '@spillway/storm/report/report'
import { markdownTable } from 'markdown-table'
import { titleOf } from '../contenders/contenders.ts'
import { algorithms } from '../contenders/hashing.ts'
import { outcomes } from '../measure/tally.ts'
import { scenarios } from '../scenarios/scenarios.ts'
import type { Results } from '../src/results.ts'
import { figure, figureKind, quantity, type Summary, summarize, typicalRows, typicalRun } from '../src/summary.ts'
import { bars, figureBars, labelOf, outcomeColors } from './chart.ts'
import {
  arrivals,
  costs,
  depths,
  growth,
  knee,
  redisCommands,
  shares,
  stack,
  variantsOf,
  waits,
  waitsOf,
} from './drawings.ts'

interface Look {
  /** The columns of the table: figures, and their titles. */
  table: Record<string, string>
  charts(summaries: readonly Summary[]): readonly Html[]
}

const looks: Record<string, Look> = {
  'login-100': {
    table: {
      neighbourP99Ms: 'Neighbour p99',
      healthzP99Ms: '/healthz p99',
      p99Ms: 'Login p99',
      perSecond: 'Verdicts a second',
      failedPercent: 'Lost',
    },
    charts: (all) =>
      algorithms.flatMap((algorithm) => {
        const summaries = all.filter(({ variant }) => variant === algorithm)
        return summaries.some(({ figures }) => figures.perSecond) ? [waitsOf(algorithm, summaries)] : []
      }),
  },
  'mixed-100': {
    table: { perSecond: 'Answered a second', p95Ms: 'p95' },
    charts: (all) => [
      figureBars('Requests answered a second', 'requests a second', all, { perSecond: '' }),
      figureBars('p95 of all requests', 'ms', all, { p95Ms: '' }),
    ],
  },
  'stress-5000': {
    table: { answeredPercent: 'Answered in time', failedPercent: 'Lost', perSecond: 'Verdicts a second' },
    charts: (all) => [
      bars(
        'How requests ended',
        '% of requests',
        all.filter(({ figures }) => figures.perSecond).flatMap(shares),
        outcomes.map((outcome) => outcomeColors[outcome]),
      ),
      figureBars('Verdicts a second meanwhile', 'verdicts a second', all.filter(isHashing), { perSecond: '' }),
    ],
  },
  ramp: { table: { kneePerSecond: 'Knee' }, charts: (all) => variantsOf(all).map(knee) },
  spike: {
    table: { failedPercent: 'Lost', inPercent: 'Got in', lastInMs: 'The last one in' },
    charts(all) {
      const runs = all.flatMap((summary) => typicalRun(summary, 'answeredPercent') ?? [])
      return [...runs.map(arrivals), depths(runs), ...runs.map(waits)]
    },
  },
  'scale-out': {
    table: { perSecond: 'Logins a second', idealPercent: 'Of the ideal line', gatewayMsPerLogin: 'Gateways, a login' },
    charts(all) {
      const sizes = all.flatMap((summary) => typicalRows(summary, 'perSecond', 'size'))
      return [growth(sizes.filter(({ gateways }) => gateways === 1)), costs(sizes)]
    },
  },
  redis: {
    table: {
      redisMsPerLogin: 'Redis, a login',
      redisServesPerSecond: 'Served at 70 % of a core',
      perSecond: 'Logins through the pipeline',
      jobsPerSecond: 'Jobs of BullMQ alone',
      ofBullmqPercent: 'Of BullMQ',
    },
    charts: (all) => all.map(redisCommands),
  },
  'several-redis': {
    table: { jobsPerSecond: 'Jobs a second', redisPercent: 'Of a core, each' },
    charts: (all) => [figureBars('Jobs a second without a hash', 'jobs a second', all, { jobsPerSecond: '' })],
  },
  idle: {
    table: { p50Ms: 'Median of a login', bareHashMs: 'Bare hash', overheadMs: 'Over the hash' },
    charts: (all) => [figureBars('Median of a login, less the bare hash', 'ms', all, { overheadMs: '' })],
  },
  service: {
    table: { p50Ms: 'By the service API', clientP50Ms: 'By the Node client', overheadMs: 'More' },
    charts: (all) => [
      figureBars('Median of a verify without a hash', 'ms', all, { p50Ms: 'service API', clientP50Ms: 'Node client' }),
    ],
  },
  efficiency: {
    table: { perSecond: 'Logins a second', barePerSecond: 'A bare loop', efficiencyPercent: 'Of the bare loop' },
    charts: (all) => [
      figureBars('Hashes a second on one core', '/s', all, { perSecond: 'logins', barePerSecond: 'the bare loop' }),
    ],
  },
  profile: {
    table: { p50Ms: 'Median of a login', processorMsPerAnswer: 'Processor time' },
    charts: (all) => [
      stack('Time of a login', all, 'time'),
      stack('Processor time of a login, by process', all, 'processor'),
    ],
  },
  engines: {
    table: { hashProcessorMs: 'Processor time', ofPackagePercent: 'Of the fastest package' },
    charts: (all) => [figureBars('Processor time of one verify', 'ms', all, { hashProcessorMs: '' })],
  },
}

export interface Section {
  name: string
  title: string
  question: string
  /** The figures of each measurement, in Markdown. */
  table: string
  charts: readonly Html[]
  /** One sentence for each run without figures. */
  failures: readonly string[]
  settings: string
}

/** Of all scenarios that were measured, in the order of the report. */
export function sectionsOf(results: Results): Section[] {
  return scenarios.flatMap(({ name, title, question }) => {
    const look = looks[name]
    const result = results.scenarios.find((scenario) => scenario.name === name)
    if (look === undefined || result === undefined || result.runs.length === 0) return []
    const summaries = summarize(result)
    return {
      ...{ name, title, question, table: tableOf(summaries, look.table), charts: look.charts(summaries) },
      failures: result.runs.flatMap(({ contender, variant, failure }) =>
        failure === undefined ? [] : [`${titleOf(contender)}, ${variant}: ${failure}`],
      ),
      settings: Object.entries(result.settings)
        .map(([setting, value]) => `${setting} ${value}`)
        .join(' · '),
    }
  })
}

function tableOf(summaries: readonly Summary[], columns: Look['table']): string {
  const names = Object.keys(columns)
  const measured = summaries.filter((summary) => names.some((name) => figure(summary, name) !== undefined))
  if (measured.length === 0) return ''
  const rows = measured.map((summary) => [
    labelOf(summary, summaries),
    ...names.map((name) => quantity(figure(summary, name), figureKind(name)?.unit ?? '')),
  ])
  return markdownTable([['', ...Object.values(columns)], ...rows], {
    align: ['l', ...names.map(() => 'r')],
    alignDelimiters: false,
  })
}

const isHashing = ({ variant }: Summary): boolean => variant !== 'token'
