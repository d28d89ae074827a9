// The sections of scenarios whose charts have a bar for each thing that was measured.
import { NATIVE_NAME } from '@spillway/worker/hashing/native'
import type { Row, ScenarioResult } from '../../src/results.ts'
import { type Summary, show, summarize } from '../../src/summary.ts'
import { bars, contenderColor } from '../chart.ts'
import { barsOf, figure, figureOf, number, quantity, type Section, section, typicalRows } from '../section.ts'

function of(summaries: readonly Summary[], contender: string, name: string, unit: string): string {
  return quantity(figureOf(summaries, contender, name), unit)
}

/** A mix of hashing and writes. */
export function mixedSection(result: ScenarioResult): Section {
  const summaries = summarize(result)
  const rows = barsOf(summaries, 'perSecond')
  const best = rows.toSorted((a, b) => b.value - a.value)[0]
  const says =
    best === undefined
      ? 'Nothing was measured.'
      : `Spillway answers ${of(summaries, 'spillway', 'perSecond', 'requests a second')}, with p95 ${of(summaries, 'spillway', 'p95Ms', 'ms')}; ` +
        `the most anyone answers is ${quantity(best.value, 'a second')} (${best.label}).`
  return section(result, says, [
    bars('Requests answered a second', 'requests a second', rows),
    bars('p95 of all requests', 'ms', barsOf(summaries, 'p95Ms')),
  ])
}

/** One login on a quiet machine, over the bare hash. */
export function idleSection(result: ScenarioResult): Section {
  const summaries = summarize(result)
  const ours = (name: string) => of(summaries, 'spillway', name, 'ms')
  const says =
    `A login with Spillway takes ${ours('p50Ms')} (median), ${ours('overheadMs')} ` +
    `more than the bare hash, which takes ${ours('bareHashMs')} there.`
  return section(result, says, [bars('Median of a login, less the bare hash', 'ms', barsOf(summaries, 'overheadMs'))])
}

/** The service API beside the Node client. */
export function serviceSection(result: ScenarioResult): Section {
  const [ours] = summarize(result)
  const took = (name: string) => figure(ours, name) ?? 0
  const says =
    `A verify without a hash takes ${quantity(took('p50Ms'), 'ms')} by the service API, ${quantity(took('overheadMs'), 'ms')} more ` +
    `than by the Node client (medians, in turn).`
  return section(result, says, [
    bars('Median of a verify without a hash', 'ms', [
      { label: 'Service API', value: took('p50Ms'), color: contenderColor('spillway') },
      { label: 'Node client', value: took('clientP50Ms'), color: 'var(--others)' },
    ]),
  ])
}

/** A worker's core against a bare loop of the hash on it. */
export function efficiencySection(result: ScenarioResult): Section {
  const summaries = summarize(result)
  const says = summaries.map((ours) => {
    const [served, bare, share] = ['perSecond', 'barePerSecond', 'efficiencyPercent'].map((name) => figure(ours, name))
    return (
      `With ${ours.variant} a worker with a core of its own answers ${quantity(served, '/s')}: ${quantity(share, '%')} of the ` +
      `${quantity(bare, '/s')} of a bare loop of the fastest package there.`
    )
  })
  const rows = summaries.flatMap((ours) => [
    {
      label: `Logins with Spillway, ${ours.variant}`,
      value: figure(ours, 'perSecond') ?? 0,
      color: contenderColor('spillway'),
    },
    { label: `The bare loop, ${ours.variant}`, value: figure(ours, 'barePerSecond') ?? 0, color: 'var(--others)' },
  ])
  return section(result, says.join(' '), [bars('Hashes a second on one core', '/s', rows)])
}

/** The same hash from different packages. */
export function enginesSection(result: ScenarioResult): Section {
  const summaries = summarize(result)
  const isNative = ({ contender }: Summary) => contender === NATIVE_NAME
  const rows = summaries.flatMap((summary) => {
    const { contender, variant } = summary
    const value = figure(summary, 'hashProcessorMs')
    const label = isNative(summary) ? `${NATIVE_NAME}, ${variant}` : contender
    const color = isNative(summary) || /^@node-rs|^crypto/.test(contender) ? 'var(--accent)' : 'var(--others)'
    return value === undefined ? [] : [{ label, value, color }]
  })
  const took = (name: string) => of(summaries, name, 'hashProcessorMs', 'ms')
  const says =
    `One argon2id verify takes ${took('@node-rs/argon2')} of processor time with @node-rs/argon2, which every contender here ` +
    `uses, and ${took('argon2')} with argon2.`
  const native = summaries
    .filter(isNative)
    .map((summary) => `${summary.variant} ${quantity(figure(summary, 'ofPackagePercent'), '%')}`)
  const saysOfNative = `Of what @node-rs or node:crypto takes, in turn, ${NATIVE_NAME} takes: ${native.join(', ')}.`
  return section(result, native.length > 0 ? `${says} ${saysOfNative}` : says, [
    bars('Processor time of one verify', 'ms', rows),
  ])
}

/** Jobs a second by the number of Redis. */
export function severalRedisSection(result: ScenarioResult): Section {
  const rows = summarize(result).flatMap((summary) => {
    const value = figure(summary, 'jobsPerSecond')
    const used = quantity(figure(summary, 'redisPercent'), '% of a core')
    return value === undefined ? [] : [{ label: summary.variant, value, used, color: 'var(--accent)' }]
  })
  const [first] = rows
  const says = rows.map(({ label, value, used }) => {
    const times = first === undefined || value === first.value ? '' : `, ${show(value / first.value)} times as many`
    return `${label} (${used} each): ${quantity(value, 'jobs a second')}${times}.`
  })
  return section(result, says.join(' '), [bars('Jobs a second without a hash', 'jobs a second', rows)])
}

/** A command that takes less of a login is noise. */
const LEAST_US = 1

/** Redis's work for a login, command by command. */
export function redisSection(result: ScenarioResult): Section {
  const [summary] = summarize(result)
  const label = ({ command, calls }: Row) =>
    calls === undefined ? `${command}` : `${command} × ${show(number(calls))}`
  const rows = typicalRows(summary, 'perSecond', 'commands')
    .filter(({ us }) => number(us) >= LEAST_US)
    .map((row) => ({ label: label(row), value: number(row.us), color: 'var(--accent)' }))
  const says =
    `A login takes ${quantity(figure(summary, 'redisMsPerLogin'), 'ms')} of Redis's processor time. At 70 % of a core one Redis server ` +
    `serves ${quantity(figure(summary, 'redisServesPerSecond'), 'logins a second')}. The pipeline passes on ` +
    `${quantity(figure(summary, 'perSecond'), 'logins a second')} without a hash: ${quantity(figure(summary, 'ofBullmqPercent'), '%')} of the ` +
    `${quantity(figure(summary, 'jobsPerSecond'), 'jobs a second')} that BullMQ alone does for as many callers.`
  return section(result, says, [bars("Redis's processor time for one login, by command", 'µs', rows)])
}
