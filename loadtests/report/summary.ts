// The top of the report: the few figures that answer the question, and a table of all contenders.

import { type Html, html } from '@spillway/client/storm/report/html'
import { contenders } from '../contenders/contenders.ts'
import { show } from '../src/figures.ts'
import type { Results } from '../src/results.ts'
import { type Summary, summarize } from '../src/summary.ts'
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
  const both = (scenario: string, name: string, tile: (ours: number, against: number) => Html) => {
    const [ours, against] = ['spillway', 'in-process'].map((contender) => figure(find(scenario, contender), name))
    return ours === undefined || against === undefined ? undefined : tile(ours, against)
  }
  const perSecond = contenders.flatMap(({ name }) => figure(find('login-100', name), 'perSecond') ?? [])
  const knee = figure(find('ramp', 'spillway', 'token'), 'kneePerSecond')
  const tiles = [
    both('login-100', 'neighbourP99Ms', (ours, against) =>
      tile(
        `${show(against / ours)} ×`,
        `lower p99 of an endpoint on libuv's thread pool while a hundred users log in: ${show(ours)} ms instead of ${show(against)} ms`,
      ),
    ),
    both('stress-5000', 'failedPercent', (ours, against) =>
      tile(
        `${show(ours)} %`,
        `of requests lost when five thousand users arrive at once; ${show(against)} % with hashing in the handler`,
      ),
    ),
    both('login-100', 'perSecond', (ours) =>
      tile(
        `${Math.round((100 * ours) / Math.max(...perSecond))} %`,
        `of the logins a second of the best contender on the same core: ${show(ours)} of ${show(Math.max(...perSecond))}`,
      ),
    ),
    knee &&
      tile(
        `${show(knee)} /s`,
        'logins through the pipeline when the hash costs nothing, load generator and database included',
      ),
  ].filter((tile) => tile !== undefined && tile !== 0)
  return tiles.length === 0 ? undefined : html`<div class="tiles">${tiles}</div>`
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
