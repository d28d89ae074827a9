// A hundred users: their waits, the waits of everyone else meanwhile, and how much gets through.
import { type Html, html } from '@spillway/storm/report/html'
import { algorithms } from '../../contenders/hashing.ts'
import type { ScenarioResult } from '../../src/results.ts'
import { type Summary, summarize } from '../../src/summary.ts'
import { bars, domainOf, type Span, spans } from '../bars.ts'
import { contenderColor } from '../colors.ts'
import { barsOf, figure, figureOf, quantity, type Section, section, titleOf } from '../section.ts'

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
