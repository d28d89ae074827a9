// A hundred users: their waits, the waits of everyone else meanwhile, and how much gets through.
import { type Html, html } from '@spillway/storm/report/report'
import { algorithms } from '../../contenders/hashing.ts'
import { outcomes } from '../../measure/tally.ts'
import type { ScenarioResult } from '../../src/results.ts'
import { type Summary, summarize } from '../../src/summary.ts'
import { bars, contenderColor, domainOf, outcomeColors, type Span, spans } from '../chart.ts'
import { barsOf, figure, figureOf, number, quantity, type Section, section, titleOf, typicalRows } from '../section.ts'

export function loginSection(result: ScenarioResult): Section {
  const all = summarize(result)
  const charts = algorithms.flatMap((algorithm) => {
    const summaries = all.filter(({ variant }) => variant === algorithm)
    return summaries.some(({ figures }) => figures.perSecond) ? [charted(algorithm, summaries)] : []
  })
  return section(result, sentence(all.filter(({ variant }) => variant === 'argon2id')), charts)
}

function charted(algorithm: string, summaries: readonly Summary[]): Html {
  const logins = spansOf(summaries, undefined)
  const neighbours = spansOf(summaries, 'neighbour')
  const healthz = spansOf(summaries, 'healthz')
  const domain = domainOf([...logins, ...neighbours, ...healthz])
  return html`<h3>${algorithm}</h3>
    ${spans("The neighbour endpoint, on libuv's thread pool, meanwhile: median, p95 and p99", neighbours, domain)}
    ${spans('/healthz, on the event loop alone, meanwhile: median, p95 and p99', healthz, domain)}
    ${spans('A login: median, p95 and p99', logins, domain)}
    ${bars('Verdicts a second', 'verdicts a second', barsOf(summaries, 'perSecond'))}`
}

/** The medians of the percentiles that begin with this name: `neighbour` for neighbourP50Ms. */
function spansOf(summaries: readonly Summary[], begins: 'neighbour' | 'healthz' | undefined): Span[] {
  return summaries.flatMap((summary) => {
    const [p50Ms, p95Ms, p99Ms] = ['50', '95', '99'].map((percentile) =>
      figure(summary, begins === undefined ? `p${percentile}Ms` : `${begins}P${percentile}Ms`),
    )
    if (p50Ms === undefined || p95Ms === undefined || p99Ms === undefined) return []
    const { contender } = summary
    return [{ label: titleOf(contender), color: contenderColor(contender), p50Ms, p95Ms, p99Ms }]
  })
}

function sentence(summaries: readonly Summary[]): string {
  const against = figureOf(summaries, 'in-process', 'neighbourP99Ms')
  const ours = figureOf(summaries, 'spillway', 'neighbourP99Ms')
  const health = (name: string) => quantity(figureOf(summaries, name, 'healthzP99Ms'), 'ms')
  const best = Math.max(...summaries.map((summary) => figure(summary, 'perSecond') ?? 0))
  const perSecond = figureOf(summaries, 'spillway', 'perSecond')
  if (against === undefined || ours === undefined || perSecond === undefined) return 'Not all were measured.'
  return (
    `With argon2id, the p99 of a neighbour on libuv's thread pool is ${quantity(against, 'ms')} when the handler hashes and ` +
    `${quantity(ours, 'ms')} with Spillway, ${Math.round(against / ours)} times less; of /healthz, which needs no thread ` +
    `of the pool, ${health('in-process')} and ${health('spillway')}. Spillway gives ${quantity(perSecond, 'verdicts a second')}, ` +
    `${Math.round((100 * perSecond) / best)} % of the best of all with the same core.`
  )
}

/** Five thousand users: the share of requests that ended each way. */
export function stressSection(result: ScenarioResult): Section {
  const summaries = summarize(result).filter(({ figures }) => figures.perSecond)
  const hashing = summaries.filter(({ variant }) => variant !== 'token')
  const answered = (name: string) => quantity(figureOf(hashing, name, 'answeredPercent'), '%')
  const pipeline = summaries.find(({ variant }) => variant === 'token')
  const says =
    `Of the requests to Spillway ${answered('spillway')} were answered in time: with a verdict, ` +
    `a ticket, or when to come back. With hashing in the handler it was ${answered('in-process')}. ` +
    `The pipeline alone, without a hash and on all cores, gave ${quantity(figure(pipeline, 'perSecond'), 'verdicts a second')}.`
  const keys = outcomes.map((outcome) => outcomeColors[outcome])
  return section(result, says, [
    bars('How requests ended', '% of requests', summaries.flatMap(shares), keys),
    bars('Verdicts a second meanwhile', 'verdicts a second', barsOf(hashing, 'perSecond')),
  ])
}

function shares(summary: Summary) {
  const [counts = {}] = typicalRows(summary, 'perSecond', 'outcomes')
  const total = outcomes.reduce((sum, outcome) => sum + number(counts[outcome]), 0)
  return outcomes.map((outcome) => ({
    label: summary.variant === 'token' ? 'Spillway, no hash' : titleOf(summary.contender),
    value: (100 * number(counts[outcome])) / total,
    color: outcomeColors[outcome].color,
  }))
}
