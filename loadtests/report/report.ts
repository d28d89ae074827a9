// The load report: one page for someone who has five minutes, without scripts or a network.
// Observable Plot draws into a document of linkedom; the style is simple.css.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import * as Plot from '@observablehq/plot'
import { TIMEOUT_MS } from '@spillway/infra/harness/api-client'
import { type Results, type ScenarioResult, type Summary, summarize } from '@spillway/loadtests/results'
import { scenarios } from '@spillway/loadtests/run'
import { parseHTML } from 'linkedom'
import { contenders, titleOf } from '../contenders/contenders.ts'
import { algorithms, costOf } from '../contenders/hashing.ts'
import { type Outcome, outcomes } from '../measure/tally.ts'

/** Plots, and the columns of the table: figures, and their titles. */
interface Look {
  columns: Record<string, string>
  plots(summaries: readonly Summary[]): string[]
}

const looks: Record<string, Look> = {
  'login-100': {
    columns: {
      neighbourP99Ms: 'Neighbour p99',
      healthzP99Ms: '/healthz p99',
      p99Ms: 'Login p99',
      perSecond: 'Logins a second',
      failedPercent: 'Lost',
    },
    plots: (all) =>
      algorithms.flatMap((algorithm) => {
        const some = all.filter(({ variant }) => variant === algorithm)
        return [waits(algorithm, some), bars(`Logins a second, ${algorithm}`, '/s', some, 'perSecond')]
      }),
  },
  'stress-5000': {
    columns: {
      okPercent: 'Answered',
      failedPercent: 'Lost',
      perSecond: 'Logins a second',
      healthzP99Ms: '/healthz p99',
    },
    plots: (all) => [shares(all)],
  },
  spike: {
    columns: { okPercent: 'Got in', failedPercent: 'Lost', lastInMs: 'The last one in' },
    plots: (all) => [shares(all), waiting(all)],
  },
  idle: {
    columns: { p50Ms: 'Median of a login', bareHashMs: 'Bare hash', overheadMs: 'Over the hash' },
    plots: (all) => [bars('Median of a login, less the bare hash', 'ms', all, 'overheadMs')],
  },
  cost: {
    columns: {
      besideMs: 'Beside the hash',
      gatewayMs: 'Gateway',
      workerMs: 'Worker',
      hashMs: 'Its hash',
      redisMs: 'Redis',
      postgresMs: 'PostgreSQL',
      gatewayKib: 'Gateway allocates',
      workerKib: 'Worker allocates',
      systemCallsCount: 'System calls',
      redisCommandsCount: 'Redis commands',
      transactionsCount: 'Transactions',
    },
    plots: () => [],
  },
  engines: {
    columns: {
      hashProcessorMs: 'Processor time',
      perSecond: 'Hashes a second',
      ofPackagePercent: 'Of the fastest package',
    },
    plots: (all) => {
      const busy = all.filter(({ variant }) => variant.endsWith('every processor'))
      return [bars('Hashes a second, on every processor', '/s', busy, 'perSecond')]
    },
  },
}

// Plots.

const { document } = parseHTML('<!doctype html><html><body></body></html>')

/** Spillway, and the contender that it is compared with, stand out. */
const colorOf = ({ contender }: Summary): string =>
  contender === 'spillway' ? '#3b82d6' : contender === 'in-process' ? '#d1495b' : '#8a94a3'

const outcomeTitles: Record<Outcome, [title: string, color: string]> = {
  ok: ['answered', '#3ca06b'],
  ticket: ['has a ticket', '#5b9be0'],
  busy: ['told when to come back', '#e0aa44'],
  timeout: ['no answer in ten seconds', '#d1495b'],
  error: ['error', '#8a3b4b'],
}

/** By its contender, and by its variant where one contender has several. */
function labelOf({ contender, variant }: Summary, all: readonly Summary[]): string {
  const hasSeveral = all.filter((other) => other.contender === contender).length > 1
  return hasSeveral ? `${titleOf(contender)}, ${variant.replace(', every processor', '')}` : titleOf(contender)
}

/** A plot under its title; empty where nothing was measured. */
function plot(title: string, rows: number, options: Plot.PlotOptions): string {
  if (rows === 0) return ''
  const size = { width: 880, height: rows * 30 + 70, marginLeft: 230, marginRight: 60, marginBottom: 40 }
  const drawn = Plot.plot({ ...size, ...options, document, style: { fontSize: '12px' }, ariaLabel: title })
  return `<figure><h4>${escaped(title)}</h4>${drawn.outerHTML}</figure>`
}

/** One bar of a figure for each contender and variant. */
function bars(title: string, unit: string, all: readonly Summary[], name: string): string {
  const rows = all.flatMap((summary) => {
    const value = summary.figures[name]
    return value === undefined ? [] : [{ label: labelOf(summary, all), value, color: colorOf(summary) }]
  })
  return plot(title, rows.length, {
    x: { label: unit, grid: true },
    y: { label: null, domain: rows.map(({ label }) => label) },
    marks: [
      Plot.barX(rows, { y: 'label', x: 'value', fill: 'color' }),
      Plot.text(rows, { y: 'label', x: 'value', text: ({ value }) => show(value), dx: 5, textAnchor: 'start' }),
    ],
  })
}

/** Medians and p99 of logins and of two bystanders, on a logarithmic scale. */
function waits(algorithm: string, all: readonly Summary[]): string {
  const kinds = { p: 'login', neighbourP: 'neighbour', healthzP: '/healthz' }
  const rows = all.flatMap((summary) =>
    Object.entries(kinds).flatMap(([begins, kind]) => {
      const [p50, p99] = [summary.figures[`${begins}50Ms`], summary.figures[`${begins}99Ms`]]
      const about = { contender: labelOf(summary, all), kind, color: colorOf(summary) }
      return p50 === undefined || p99 === undefined ? [] : [{ ...about, p50, p99 }]
    }),
  )
  const title = `Logins, and meanwhile a neighbour on libuv's thread pool and /healthz: median and p99, ${algorithm}`
  return plot(title, rows.length, {
    height: rows.length * 22 + 80,
    x: { type: 'log', label: 'ms', grid: true, tickFormat: show },
    y: { label: null, domain: Object.values(kinds) },
    fy: { axis: null, domain: [...new Set(rows.map(({ contender }) => contender))] },
    marks: [
      Plot.axisFy({ anchor: 'left', label: null, textAnchor: 'end', dx: -70 }),
      Plot.ruleY(rows, { fy: 'contender', y: 'kind', x1: 'p50', x2: 'p99', stroke: 'color', strokeWidth: 6 }),
      Plot.dot(rows, { fy: 'contender', y: 'kind', x: 'p99', fill: 'color', r: 5 }),
      Plot.text(rows, {
        fy: 'contender',
        y: 'kind',
        x: 'p99',
        text: ({ p99 }) => show(p99),
        dx: 10,
        textAnchor: 'start',
      }),
    ],
  })
}

/** The share of requests that ended in each way, one bar for each contender. */
function shares(all: readonly Summary[]): string {
  const rows = all.flatMap((summary) =>
    outcomes.map((outcome) => {
      const [ended, color] = outcomeTitles[outcome]
      return { label: labelOf(summary, all), value: summary.figures[`${outcome}Percent`] ?? 0, ended, color }
    }),
  )
  const [titles, colors] = [0, 1].map((n) => Object.values(outcomeTitles).map((each) => each[n] ?? ''))
  const legend = (titles ?? []).map((title, n) => `<span style="color:${colors?.[n]}">■</span> ${escaped(title)}`)
  const marks = [Plot.barX(rows, { y: 'label', x: 'value', fill: 'color' })]
  const y = { label: null, domain: all.map((summary) => labelOf(summary, all)) }
  const x = { label: '% of requests', domain: [0, 100], grid: true, clamp: true }
  return `${plot('How requests ended', all.length, { x, y, marks })}<p><small>${legend.join(' ')}</small></p>`
}

/** How many requests waited, over the time of a spike. */
function waiting(all: readonly Summary[]): string {
  const rows = all.flatMap((summary) =>
    summary.series.map(({ second = 0, open = 0 }) => ({
      second,
      open,
      label: labelOf(summary, all),
      color: colorOf(summary),
    })),
  )
  return plot('Logins that wait, over time', rows.length, {
    height: 260,
    marginLeft: 60,
    marginRight: 120,
    x: { label: 'seconds' },
    y: { label: null, grid: true },
    marks: [
      Plot.lineY(rows, { x: 'second', y: 'open', stroke: 'color', z: 'label', strokeWidth: 2 }),
      Plot.text(rows, Plot.selectMaxY({ x: 'second', y: 'open', z: 'label', text: 'label', fill: 'color', dy: -8 })),
    ],
  })
}

// Texts.

const escaped = (text: string): string => text.replace(/[&<>"']/g, (found) => `&#${found.codePointAt(0)};`)
const list = (items: readonly string[]): string => `<ul>${items.map((item) => `<li>${item}</li>`).join('')}</ul>`

/** Three digits. */
function show(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toLocaleString('en', { maximumFractionDigits: digits })
}

/** By the end of a figure's name; other figures are per second. */
const units: Record<string, string> = { Ms: ' ms', Percent: ' %', Kib: ' KiB', Count: '' }

function quantity(value: number | undefined, name: string): string {
  const [end = ''] = /[A-Z][a-z]+$/.exec(name) ?? []
  return value === undefined ? '–' : show(value) + (units[end] ?? '/s')
}

/** A table of a scenario: the first row is its head. */
function cells(result: ScenarioResult): string[][] {
  const columns = Object.entries(looks[result.name]?.columns ?? {})
  const rows = summarize(result).map(({ contender, variant, figures }) => [
    `${titleOf(contender)}, ${variant}`,
    ...columns.map(([name]) => quantity(figures[name], name)),
  ])
  return [['', ...columns.map(([, title]) => title)], ...rows]
}

/** The tables for a terminal. */
export function tablesInLines({ scenarios: results }: Results): string {
  return results
    .flatMap((result) => {
      const table = cells(result)
      const widths = table[0]?.map((_, n) => Math.max(...table.map((row) => row[n]?.length ?? 0))) ?? []
      const line = (row: string[]) =>
        row.map((cell, n) => (n === 0 ? cell.padEnd(widths[n] ?? 0) : cell.padStart(widths[n] ?? 0))).join('   ')
      return ['', scenarios.find(({ name }) => name === result.name)?.title ?? result.name, ...table.map(line)]
    })
    .join('\n')
}

function section(result: ScenarioResult): string {
  const { title, question } = scenarios.find(({ name }) => name === result.name) ?? { title: result.name, question: '' }
  const rows = cells(result).map((row, n) => {
    const tag = n === 0 ? 'th' : 'td'
    return `<tr>${row.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join('')}</tr>`
  })
  const failures = result.runs.flatMap(({ contender, variant, failure }) =>
    failure === undefined ? [] : [escaped(`${titleOf(contender)}, ${variant}: ${failure}`)],
  )
  return `<h2 id="${result.name}">${escaped(title)}</h2><p>${escaped(question)}</p>
<table>${rows.join('\n')}</table>
${failures.length > 0 ? `<p>Without figures:</p>${list(failures)}` : ''}
${looks[result.name]?.plots(summarize(result)).join('\n') ?? ''}`
}

/** Above this, others used so much of the machine that figures should be measured again. */
const NOISY_PERCENT = 10
/** Of a core: above this the generator may have been what was slow. */
const GENERATOR_BUSY_PERCENT = 85

/** What makes the figures doubtful, a sentence each. */
function warnings({ interrupted, scenarios: results }: Results): string[] {
  const runs = results.flatMap(({ runs }) => runs)
  const noisy = runs.filter(({ backgroundPercent = 0 }) => backgroundPercent > NOISY_PERCENT).length
  const busy = runs.filter(({ figures: { generatorPercent = 0 } }) => generatorPercent > GENERATOR_BUSY_PERCENT).length
  return [
    ...(interrupted ? ['This run was interrupted: it shows what had been measured until then.'] : []),
    ...(noisy > 0
      ? [`Others used more than ${NOISY_PERCENT} % of the machine before ${noisy} of ${runs.length} measurements.`]
      : []),
    ...(busy > 0
      ? [`The generator used more than ${GENERATOR_BUSY_PERCENT} % of a core in ${busy} measurements.`]
      : []),
  ]
}

const OWN_STYLE = `body { grid-template-columns: 1fr min(60rem, 94%) 1fr } table { font-size: 0.8rem } td + td { text-align: right }
figure { margin: 1.5rem 0 } figure h4 { margin: 0 } figure svg { width: 100%; height: auto; overflow: visible; --plot-background: var(--bg) }`

export function renderReport(results: Results): string {
  const { startedAt, commit, machine, repeat, bareHashMs } = results
  const css = readFileSync(createRequire(import.meta.url).resolve('simpledotcss/simple.min.css'), 'utf8')
  const about = `${startedAt.slice(0, 16).replace('T', ' ')} UTC · commit ${commit} · ${machine.processor}, ${machine.cores} cores, ${machine.memoryGib} GiB · ${machine.system} · Node ${machine.node}`
  const method = [
    machine.pinned
      ? 'Load generator and PostgreSQL have the first core, the contender and Redis the others.'
      : 'Nothing is pinned: the load generator shares the processor with what it measures.',
    'Every contender serves the same API with the same Fastify and the same PostgreSQL tables, and writes a log line for each request.',
    `argon2id is ${costOf.argon2id}, bcrypt ${costOf.bcrypt}. Rivals hash with @node-rs/argon2 and @node-rs/bcrypt: ${show(bareHashMs.argon2id)} and ${show(bareHashMs.bcrypt)} ms alone. Spillway's workers hash with ${machine.engine === 'native' ? 'their native engine' : 'the same packages'}.`,
    'With bcrypt the password is wrong: after a right one Spillway would store argon2id in its place.',
    `A request without an answer after ${TIMEOUT_MS / 1_000} s is lost. A ticket is redeemed until there is a result.`,
    "The neighbour asks for the state of a file, for which Node needs libuv's thread pool. /healthz needs the event loop only.",
    repeat > 1
      ? `Everything was measured ${repeat} times, in turn: figures are medians.`
      : 'Everything was measured once.',
  ]
  const told = contenders.map(
    ({ title, how, origin }) => `<b>${escaped(title)}</b>: ${escaped(how)} From ${escaped(origin)}.`,
  )
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Where should passwords be hashed?</title>
<style>${css}${OWN_STYLE}</style>
</head>
<body>
<header><h1>Where should passwords be hashed?</h1><p><small>${escaped(about)}</small></p></header>
<main>
${warnings(results)
  .map((warning) => `<p class="notice">${escaped(warning)}</p>`)
  .join('')}
${results.scenarios.map(section).join('\n')}
<h2>How it was measured</h2>${list(method.map(escaped))}
<h3>The contenders</h3>${list(told)}
</main>
</body>
</html>
`
}
