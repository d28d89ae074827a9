// The top of the report: the few figures that answer the question, and a table of all contenders.
import { markdownTable } from 'markdown-table'
import { contenders, titleOf } from '../contenders/contenders.ts'
import type { Results } from '../src/results.ts'
import { figure, type Summary, show, summarize } from '../src/summary.ts'

type Find = (scenario: string, contender: string, variant?: string) => Summary | undefined

function finder(results: Results): Find {
  const all = new Map(results.scenarios.map((scenario) => [scenario.name, summarize(scenario)]))
  return (scenario, contender, variant = 'argon2id') =>
    all.get(scenario)?.find((summary) => summary.contender === contender && summary.variant === variant)
}

/** A sentence for each; those whose measurements are missing are left out. */
export function headlines(results: Results): string[] {
  const find = finder(results)
  const both = (scenario: string, name: string, say: (ours: number, against: number) => string) => {
    const [ours, against] = ['spillway', 'in-process'].map((contender) => figure(find(scenario, contender), name))
    return ours === undefined || against === undefined ? [] : [say(ours, against)]
  }
  const best = Math.max(...contenders.flatMap(({ name }) => figure(find('login-100', name), 'perSecond') ?? []))
  const knee = figure(find('ramp', 'spillway', 'token'), 'kneePerSecond')
  return [
    ...spikeHeadline(find),
    ...both(
      'login-100',
      'neighbourP99Ms',
      (ours, against) =>
        `**${show(against / ours)} ×** lower p99 of an endpoint on libuv's thread pool while a hundred users log in: ${show(ours)} ms ` +
        `instead of ${show(against)} ms`,
    ),
    ...both(
      'stress-5000',
      'failedPercent',
      (ours, against) =>
        `**${show(ours)} %** of requests lost when five thousand users arrive at once; ${show(against)} % with hashing in the handler`,
    ),
    ...both(
      'login-100',
      'perSecond',
      (ours) =>
        `**${Math.round((100 * ours) / best)} %** of the logins a second of the best contender on the same core: ${show(ours)} of ${show(best)}`,
    ),
    ...(knee === undefined
      ? []
      : [
          `**${show(knee)} /s** logins through the pipeline when the hash costs nothing, load generator and database included`,
        ]),
  ]
}

/** The share of the spike that got in, beside the share at each rival. */
function spikeHeadline(find: Find): string[] {
  const shareOf = (contender: string) => figure(find('spike', contender), 'inPercent')
  const lastInMs = figure(find('spike', 'spillway'), 'lastInMs')
  const ours = shareOf('spillway')
  if (ours === undefined || lastInMs === undefined) return []
  const rivals = contenders.flatMap(({ name }) => {
    const share = name === 'spillway' ? undefined : shareOf(name)
    return share === undefined ? [] : [`${titleOf(name)} ${show(share)} %`]
  })
  const against = rivals.length === 0 ? '' : `; ${rivals.join(', ')}`
  return [
    `**${show(ours)} %** of ten seconds at ten times capacity got in, the last one after ${show(lastInMs / 1_000)} s${against}`,
  ]
}

interface Column {
  title: string
  scenario: string
  variant?: string
  figure: string
  unit: string
  /** Whether a ratio to the in-process contender says something. */
  ratio?: boolean
}

const ofLogins = { scenario: 'login-100', ratio: true }
const ofBcrypt = { ...ofLogins, variant: 'bcrypt' }

const columns: readonly Column[] = [
  { title: 'Neighbour p99', ...ofLogins, figure: 'neighbourP99Ms', unit: 'ms' },
  { title: '/healthz p99', ...ofLogins, figure: 'healthzP99Ms', unit: 'ms' },
  { title: 'Login p99', ...ofLogins, figure: 'p99Ms', unit: 'ms' },
  { title: 'Logins a second', ...ofLogins, figure: 'perSecond', unit: '/s' },
  { title: 'Errors', scenario: 'login-100', figure: 'failedPercent', unit: '%' },
  { title: 'Neighbour p99, bcrypt', ...ofBcrypt, figure: 'neighbourP99Ms', unit: 'ms' },
  { title: '/healthz p99, bcrypt', ...ofBcrypt, figure: 'healthzP99Ms', unit: 'ms' },
  { title: 'Logins a second, bcrypt', ...ofBcrypt, figure: 'perSecond', unit: '/s' },
  { title: 'Lost at 5,000 users', scenario: 'stress-5000', figure: 'failedPercent', unit: '%' },
  { title: 'Idle, over the hash', scenario: 'idle', figure: 'overheadMs', unit: 'ms' },
]

/** A Markdown table with a line for each contender, with ratios to the first; empty where nothing of it was measured. */
export function contenderTable(results: Results): string {
  const find = finder(results)
  const shown = columns.filter((column) => contenders.some(({ name }) => find(column.scenario, name, column.variant)))
  const [first] = contenders
  if (shown.length === 0 || first === undefined) return ''
  const rows = contenders
    .filter(({ name }) => shown.some((column) => find(column.scenario, name, column.variant)))
    .map(({ name }) => [
      name === 'spillway' ? `**${titleOf(name)}**` : titleOf(name),
      ...shown.map((column) => {
        const against = name === first.name ? undefined : find(column.scenario, first.name, column.variant)
        return cell(column, find(column.scenario, name, column.variant), against)
      }),
    ])
  const titles = ['Contender', ...shown.map(({ title }) => title)]
  return [
    markdownTable([titles, ...rows], { align: ['l', ...shown.map(() => 'r')], alignDelimiters: false, padding: true }),
    "In brackets: the ratio to hashing in the handler. The neighbour asks for the state of a file, on libuv's thread pool, as an asynchronous " +
      'hash does; /healthz needs the event loop alone.',
  ].join('\n\n')
}

function cell(
  { figure: name, unit, ratio }: Column,
  summary: Summary | undefined,
  against: Summary | undefined,
): string {
  const found = summary?.figures[name]
  if (found === undefined) return summary?.failure === undefined ? '–' : 'not run'
  const base = figure(against, name)
  const spread = found.plusMinus === undefined ? '' : ` ± ${show(found.plusMinus)}`
  const times = ratio && base ? ` (${show(found.median / base)} ×)` : ''
  return `${show(found.median)}${spread} ${unit}${times}`
}
