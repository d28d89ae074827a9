// The load report: one page for someone who has five minutes.
import { TIMEOUT_MS } from '@spillway/infra/rig/api-client'
import { contenders, titleOf } from '../contenders/contenders.ts'
import { algorithms, costOf } from '../contenders/hashing.ts'
import { processorsInWords } from '../scenarios/bare-hash.ts'
import {
  quantity,
  type Results,
  type ScenarioResult,
  type Summary,
  show,
  summarize,
  typicalRun,
  unitOf,
} from '../src/results.ts'
import { scenarios } from '../src/run.ts'
import { figureBars, knee, labelOf, overTime, shares, waits } from './charts.ts'
import { type Html, html, page, table } from './page.ts'

export function renderReport(results: Results): string {
  const { startedAt, commit, machine } = results
  const { processor, cores, memoryGib, system, node } = machine
  const when = startedAt.slice(0, 16).replace('T', ' ')
  return page({
    title: 'Where should passwords be hashed?',
    lead: 'The architectures in use for logins in Node, side by side: the same cores, users, hash and API.',
    about: `${when} UTC · commit ${commit} · ${processor}, ${cores} cores, ${memoryGib} GiB · ${system} · Node ${node}`,
    body: [
      warnings(results).map((warning) => html`<p class="notice">${warning}</p>`),
      list(headlines(results)),
      sections(results),
      method(results),
    ],
  })
}

function list(items: readonly (string | Html)[]): Html {
  return html`<ul>${items.map((item) => html`<li>${item}</li>`)}</ul>`
}

/** Above this, others used so much of the machine that figures should be measured again. */
const NOISY_PERCENT = 10
/** Of a core: above this the generator may have been what was slow. */
const GENERATOR_BUSY_PERCENT = 85

/** What makes the figures doubtful, a sentence each. */
function warnings({ interrupted, scenarios }: Results): string[] {
  const runs = scenarios.flatMap(({ name, runs }) => runs.map((run) => ({ name, ...run })))
  const noisy = runs.filter(({ backgroundPercent = 0 }) => backgroundPercent > NOISY_PERCENT)
  const busy = runs.filter(({ figures: { generatorPercent = 0 } }) => generatorPercent > GENERATOR_BUSY_PERCENT)
  const names = busy.map(({ name, contender, variant }) => `${name} (${contender}, ${variant})`).join(', ')
  const [before, more] = [
    `before ${noisy.length} of ${runs.length} measurements`,
    `used more than ${NOISY_PERCENT} % of it`,
  ]
  return [
    interrupted && 'This run was interrupted: what follows is what it had measured until then.',
    noisy.length > 0 && `The machine was not quiet: ${before} others ${more}. Take the figures as rough.`,
    busy.length > 0 &&
      `The generator used more than ${GENERATOR_BUSY_PERCENT} % of a core in ${names}: there servers may be faster than shown.`,
  ].filter((warning) => warning !== false)
}

function finder(results: Results) {
  const all = new Map(results.scenarios.map((scenario) => [scenario.name, summarize(scenario)]))
  return (scenario: string, contender: string, variant = 'argon2id'): Summary | undefined =>
    all.get(scenario)?.find((summary) => summary.contender === contender && summary.variant === variant)
}

/** A sentence for each figure that answers the question and was measured. */
function headlines(results: Results): Html[] {
  const find = finder(results)
  const of = (contender: string, scenario: string, name: string) => find(scenario, contender)?.figures[name]
  const both = (scenario: string, name: string, say: (ours: number, against: number) => Html) => {
    const [ours, against] = ['spillway', 'in-process'].map((contender) => of(contender, scenario, name))
    return ours === undefined || against === undefined ? [] : [say(ours, against)]
  }
  const best = Math.max(...contenders.flatMap(({ name }) => of(name, 'login-100', 'perSecond') ?? []))
  const lastInS = show((of('spillway', 'spike', 'lastInMs') ?? 0) / 1_000)
  return [
    ...both(
      'spike',
      'inPercent',
      (ours, against) =>
        html`<b>${show(ours)} %</b> of ten seconds at ten times capacity got in, the last one after ${lastInS} s; ${show(against)} % with hashing in the handler`,
    ),
    ...both(
      'login-100',
      'neighbourP99Ms',
      (ours, against) =>
        html`<b>${show(against / ours)} ×</b> lower p99 of an endpoint on libuv's thread pool while a hundred users log in: ${show(ours)} ms instead of ${show(against)} ms`,
    ),
    ...both(
      'stress-5000',
      'failedPercent',
      (ours, against) =>
        html`<b>${show(ours)} %</b> of requests lost when five thousand users arrive at once; ${show(against)} % with hashing in the handler`,
    ),
    ...both(
      'login-100',
      'perSecond',
      (ours) =>
        html`<b>${Math.round((100 * ours) / best)} %</b> of the logins a second of the best contender on the same core: ${show(ours)} of ${show(best)}`,
    ),
  ]
}

interface Look {
  /** The columns of the table: figures, and their titles. */
  table: Record<string, string>
  /** What the figures say of the machine. */
  note?(summaries: readonly Summary[], result: ScenarioResult): string | undefined
  charts(summaries: readonly Summary[]): readonly Html[]
}

const ramps = {
  login: 'Logins',
  registration: 'Registrations',
  token: 'Logins without a hash, every process on all cores',
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
    charts: (all) => algorithms.flatMap((algorithm) => ofVariant(all, algorithm, (some) => waits(algorithm, some))),
  },
  'stress-5000': {
    table: { answeredPercent: 'Answered in time', failedPercent: 'Lost', perSecond: 'Verdicts a second' },
    charts: (all) => [shares(all.filter(({ figures }) => figures.perSecond))],
  },
  ramp: {
    table: { kneePerSecond: 'Knee' },
    charts: (all) =>
      Object.entries(ramps).flatMap(([variant, title]) => ofVariant(all, variant, (some) => knee(title, some))),
  },
  spike: {
    table: { failedPercent: 'Lost', inPercent: 'Got in', lastInMs: 'The last one in' },
    charts: (all) => overTime(all.flatMap((summary) => typicalRun(summary) ?? [])),
  },
  idle: {
    table: { p50Ms: 'Median of a login', bareHashMs: 'Bare hash', overheadMs: 'Over the hash' },
    charts: (all) => [figureBars('Median of a login, less the bare hash', 'ms', all, 'overheadMs')],
  },
  engines: {
    table: {
      hashProcessorMs: 'Processor time',
      perSecond: 'Hashes a second',
      ofPackagePercent: 'Of the fastest package',
    },
    note: processorsInWords,
    charts: (all) => {
      const busy = all.filter(({ variant }) => variant.endsWith('every processor'))
      return [figureBars('Hashes a second, on every processor', '/s', busy, 'perSecond')]
    },
  },
}

function ofVariant(all: readonly Summary[], variant: string, draw: (some: readonly Summary[]) => Html): Html[] {
  const some = all.filter((summary) => summary.variant === variant && Object.keys(summary.figures).length > 0)
  return some.length > 0 ? [draw(some)] : []
}

/** The figures of all scenarios that were measured, in the order of the report. */
function tables(results: Results) {
  return scenarios.flatMap(({ name, title, question }) => {
    const look = looks[name]
    const result = results.scenarios.find((scenario) => scenario.name === name)
    if (look === undefined || result === undefined || result.runs.length === 0) return []
    const summaries = summarize(result)
    const names = Object.keys(look.table)
    const rows = summaries
      .filter((summary) => names.some((each) => summary.figures[each] !== undefined))
      .map((summary): [string, ...string[]] => {
        return [labelOf(summary, summaries), ...names.map((each) => quantity(summary.figures[each], unitOf(each)))]
      })
    const heads = ['', ...Object.values(look.table)]
    return [{ name, title, question, heads, rows, note: look.note?.(summaries, result), look, result, summaries }]
  })
}

/** The tables for a terminal. */
export function tablesInLines(results: Results): string {
  const drawn = tables(results).flatMap(({ title, heads, rows, note }) => {
    const all = [heads, ...rows]
    const widths = heads.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)))
    const line = (row: readonly string[]) =>
      row.map((cell, n) => (n === 0 ? cell.padEnd(widths[n] ?? 0) : cell.padStart(widths[n] ?? 0))).join('   ')
    return rows.length === 0
      ? []
      : ['', title, ...all.map((row) => `  ${line(row)}`.trimEnd()), ...(note ? [note] : [])]
  })
  return drawn.join('\n')
}

function sections(results: Results): Html[] {
  return tables(results).map(({ name, title, question, heads, rows, note, look, result, summaries }) => {
    const failures = result.runs.filter(({ failure }) => failure !== undefined)
    const failed = failures.map(({ contender, variant, failure }) => `${titleOf(contender)}, ${variant}: ${failure}`)
    const settings = Object.entries(result.settings).map(([setting, value]) => `${setting} ${value}`)
    return html`<h2 id="${name}">${title}</h2><p>${question}</p>
${rows.length > 0 ? table(heads, rows) : undefined}${note && html`<p>${note}</p>`}
${failed.length > 0 ? html`<p>Without figures:</p>${list(failed)}` : undefined}
${look.charts(summaries)}<p><small>${name}: ${settings.join(' · ')}</small></p>`
  })
}

function method({ machine, settings }: Results): Html {
  const [repeat, logins, atMostS] = [settings.repeat, settings.warmUpLogins, settings.warmUpAtMostS].map(Number)
  const [argon2id, bcrypt] = [settings.argon2idBareMs, settings.bcryptBareMs].map((ms) => `${show(Number(ms))} ms`)
  const told = contenders.map(
    ({ title, how, origin, name }) => html`<b>${title}</b> (<code>${name}</code>): ${how} From ${origin}.`,
  )
  return html`<h2>How it was measured</h2>${list([
    machine.pinned
      ? 'Processes are pinned: load generator and PostgreSQL to the first core, the contender and Redis to the others. What includes every process (the pipeline without a hash) runs on all cores.'
      : 'Nothing is pinned: this machine has no taskset or only one core, so the load generator shares the processor with what it measures.',
    'Every contender serves the same API with the same Fastify, the same client to the same PostgreSQL tables, the same Ed25519 signatures and a log line for each request. PostgreSQL is local and does not wait for the disk.',
    `argon2id is ${costOf.argon2id}; bcrypt is ${costOf.bcrypt}. Rivals hash with @node-rs/argon2 and @node-rs/bcrypt, the fastest packages; Spillway's workers with ${machine.engine === 'native' ? 'their native engine' : 'the same'}. Alone on its core, one verify with a package took ${argon2id} and ${bcrypt}.`,
    'With bcrypt the password is wrong, so that each login costs everyone exactly one compare. After a right one Spillway would store argon2id in its place.',
    "A hundred users are autocannon's connections, opened before anything is counted; each sends its next request when the last was answered. Where the question is overload (ramp, spike), requests leave when they are due, and latency counts from then. The five thousand users come back when they are told to, as a good client does.",
    `Servers are measured warm, after ${show(logins ?? 0)} logins or ${show(atMostS ?? 0)} s. These logins take a double of a hash that costs nothing, and goes the same way; workers accept it when told to, and never in production.`,
    `A request without an answer after ${TIMEOUT_MS / 1_000} s is lost, and counts with that time. A ticket is redeemed until there is a verdict, and its wait counts until then.`,
    "The neighbour endpoint reads the state of a file, for which Node needs a thread of libuv's pool (four), as for dns.lookup, zlib, much of crypto, and every asynchronous hash. On Spillway's gateway it is a small static file. /healthz needs the event loop alone. Both are asked 40 times a second.",
    (repeat ?? 1) > 1
      ? `Everything was measured ${repeat} times, in turn; figures are medians. The JSON file beside the page has each run.`
      : 'Everything was measured once: how far repeats would lie apart is unknown.',
  ])}<h3>The contenders</h3>${list(told)}<p>Repeat it: <code>pnpm load</code>, or <code>pnpm load --help</code>.</p>`
}
