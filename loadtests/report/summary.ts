// The top of the report: the few figures that answer the question, and a table of all contenders.
import { contenders } from '../contenders/contenders.ts'
import { show } from '../src/figures.ts'
import type { Results } from '../src/results.ts'
import { type Summary, summarize } from '../src/summary.ts'
import { type Html, html } from './html.ts'
import { figure, titleOf } from './section.ts'

type Find = (scenario: string, contender: string, variant?: string) => Summary | undefined

function finder(results: Results): Find {
  const all = new Map(results.scenarios.map((scenario) => [scenario.name, summarize(scenario)]))
  return (scenario, contender, variant = 'argon2id') =>
    all.get(scenario)?.find((summary) => summary.contender === contender && summary.variant === variant)
}

/** At most four tiles; those whose measurements are missing are left out. */
export function headlines(results: Results): Html | undefined {
  const find = finder(results)
  const tiles = [neighbour(find), lost(find), throughput(find), pipeline(find)].filter((tile) => tile !== undefined)
  return tiles.length === 0 ? undefined : html`<div class="tiles">${tiles}</div>`
}

function neighbour(find: Find): Html | undefined {
  const against = figure(find('login-100', 'in-process'), 'neighbourP99Ms')
  const ours = figure(find('login-100', 'spillway'), 'neighbourP99Ms')
  if (against === undefined || ours === undefined) return undefined
  return tile(
    `${show(against / ours)} ×`,
    `lower p99 of an endpoint on libuv's thread pool while a hundred users log in: ${show(ours)} ms instead of ${show(against)} ms`,
  )
}

function lost(find: Find): Html | undefined {
  const against = figure(find('stress-5000', 'in-process'), 'failedPercent')
  const ours = figure(find('stress-5000', 'spillway'), 'failedPercent')
  if (against === undefined || ours === undefined) return undefined
  return tile(
    `${show(ours)} %`,
    `of requests lost when five thousand users arrive at once; ${show(against)} % with hashing in the handler`,
  )
}

function throughput(find: Find): Html | undefined {
  const all = contenders.flatMap(({ name }) => figure(find('login-100', name), 'perSecond') ?? [])
  const ours = figure(find('login-100', 'spillway'), 'perSecond')
  if (ours === undefined || all.length < 2) return undefined
  return tile(
    `${Math.round((100 * ours) / Math.max(...all))} %`,
    `of the logins a second of the best contender on the same core: ${show(ours)} of ${show(Math.max(...all))}`,
  )
}

function pipeline(find: Find): Html | undefined {
  const knee = figure(find('ramp', 'spillway', 'token'), 'kneePerSecond')
  if (!knee) return undefined
  return tile(
    `${show(knee)} /s`,
    'logins through the pipeline when the hash costs nothing, load generator and database included',
  )
}

function tile(value: string, text: string): Html {
  return html`<div class="tile"><strong>${value}</strong><span>${text}</span></div>`
}

interface Column {
  title: string
  scenario: string
  variant?: string
  figure: string
  unit: string
  /** Whether a ratio to the in-process contender says something. */
  ratio: boolean
}

const columns: readonly Column[] = [
  { title: 'Neighbour p99', scenario: 'login-100', figure: 'neighbourP99Ms', unit: 'ms', ratio: true },
  { title: '/healthz p99', scenario: 'login-100', figure: 'healthzP99Ms', unit: 'ms', ratio: true },
  { title: 'Login p99', scenario: 'login-100', figure: 'p99Ms', unit: 'ms', ratio: true },
  { title: 'Logins a second', scenario: 'login-100', figure: 'perSecond', unit: '/s', ratio: true },
  { title: 'Errors', scenario: 'login-100', figure: 'failedPercent', unit: '%', ratio: false },
  {
    title: 'Neighbour p99, bcrypt',
    scenario: 'login-100',
    variant: 'bcrypt',
    figure: 'neighbourP99Ms',
    unit: 'ms',
    ratio: true,
  },
  {
    title: '/healthz p99, bcrypt',
    scenario: 'login-100',
    variant: 'bcrypt',
    figure: 'healthzP99Ms',
    unit: 'ms',
    ratio: true,
  },
  {
    title: 'Logins a second, bcrypt',
    scenario: 'login-100',
    variant: 'bcrypt',
    figure: 'perSecond',
    unit: '/s',
    ratio: true,
  },
  { title: 'Lost at 5,000 users', scenario: 'stress-5000', figure: 'failedPercent', unit: '%', ratio: false },
  { title: 'Idle, over the hash', scenario: 'idle', figure: 'overheadMs', unit: 'ms', ratio: false },
]

/** A line for each contender, with ratios to the first. */
export function contenderTable(results: Results): Html | undefined {
  const find = finder(results)
  const shown = columns.filter((column) => contenders.some(({ name }) => find(column.scenario, name, column.variant)))
  const [first] = contenders
  if (shown.length === 0 || first === undefined) return undefined
  const rows = contenders.filter(({ name }) => shown.some((column) => find(column.scenario, name, column.variant)))
  return html`<div class="table"><table>
    <caption>Small: the ratio to hashing in the handler. The neighbour asks for the state of a file, on libuv's thread pool, as an
      asynchronous hash does; /healthz needs the event loop alone.</caption>
    <thead><tr><th scope="col">Contender</th>${shown.map(({ title }) => html`<th scope="col">${title}</th>`)}</tr></thead>
    <tbody>${rows.map(
      ({ name }) =>
        html`<tr class="${name}"><th scope="row">${titleOf(name)}</th>${shown.map((column) =>
          cell(
            column,
            find(column.scenario, name, column.variant),
            name === first.name ? undefined : find(column.scenario, first.name, column.variant),
          ),
        )}</tr>`,
    )}</tbody>
  </table></div>`
}

function cell({ figure: name, unit, ratio }: Column, summary: Summary | undefined, against: Summary | undefined): Html {
  const found = summary?.figures[name]
  if (found === undefined)
    return html`<td class="none" title="${summary?.failure}">${summary?.failure === undefined ? '–' : 'not run'}</td>`
  const base = figure(against, name)
  const times = ratio && base ? html` <small>${show(found.median / base)} ×</small>` : undefined
  const spread =
    found.plusMinus === undefined ? undefined : html`<small class="spread">± ${show(found.plusMinus)}</small>`
  return html`<td>${show(found.median)} ${unit}${times}${spread}</td>`
}
