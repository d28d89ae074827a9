// A storm for the terminal: sentences, a table, and what to do.
import type { ProbeResult, StormResult } from '../result.ts'
import { advice } from './advice.ts'
import { count, list, milliseconds, rate, seconds } from './figures.ts'

const WIDTH = 100
const COLUMN = 13

export function inWords(result: StormResult): string {
  const todo = advice(result).flatMap(({ text, code = [], more }) => [
    ...wrapped(text),
    ...code.map((line) => `    ${line}`),
    ...(more === undefined ? [] : [`See: ${more}`]),
    '',
  ])
  const said = sentences(result).flatMap((sentence) => [...wrapped(sentence), ''])
  const lines = [...said, ...drawn(result), ...(todo.length > 0 ? ['What to do', '', ...todo] : [])]
  return lines.join('\n').trimEnd()
}

function drawn(result: StormResult): string[] {
  const { columns, rows } = table(result)
  if (rows.length === 0) return []
  const width = Math.max(...rows.map(({ name }) => name.length)) + 1
  const line = (name: string, cells: readonly string[]) =>
    `${name.padEnd(width)}${cells.map((cell) => cell.padStart(COLUMN)).join('')}`
  const heads = phases.map((phase) => phase.padStart(COLUMN * (columns.length / phases.length)))
  return [line('', heads), line('', columns), ...rows.map(({ name, cells }) => line(name, cells)), '']
}

function wrapped(text: string): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const longer = `${lines.at(-1) ?? ''} ${word}`
    if (lines.length > 0 && longer.length <= WIDTH) lines[lines.length - 1] = longer
    else lines.push(word)
  }
  return lines
}

// The table of a storm: what each probe took before it, in it and after it.

export const phases = ['calm', 'storm', 'after'] as const

interface Table {
  /** Those of each phase, in the order of the phases. */
  columns: string[]
  rows: { name: string; cells: string[] }[]
}

export function table({ probes, settings: { timeoutS } }: StormResult): Table {
  return {
    columns: phases.flatMap(() => ['p50', 'p99']),
    rows: probes.map((probe) => ({
      name: probe.name,
      cells: phases.flatMap((phase) =>
        [probe[phase].p50Ms, probe[phase].p99Ms].map((ms) => milliseconds(ms, timeoutS)),
      ),
    })),
  }
}

// What a storm did, in plain sentences that say no more than was measured.

/** The same for the terminal and the report. */
export function sentences(result: StormResult): string[] {
  if (result.logins.success + result.logins.refused + result.logins.lost + result.logins.other === 0) {
    return ['The storm was interrupted before a login had ended.']
  }
  return [
    `${heading(result)} ${ofLogins(result)}`,
    ...result.probes.map((probe) => ofProbe(probe, result)),
    ...calmAgain(result),
    ...ofThisProgram(result),
  ]
}

function heading({ settings, target, login, stormS, interrupted }: StormResult): string {
  const who = settings.users === 1 ? 'One user' : `${count(settings.users)} users`
  const until = interrupted ? ', then the storm was interrupted' : ''
  return `${who} logged in to ${target} (${login}) again and again for ${seconds(stormS)}${until}.`
}

function ofLogins({ logins, settings: { timeoutS } }: StormResult): string {
  const { success, refused, lost, other, reasons, perSecond, p50Ms, p99Ms } = logins
  const all = success + refused + lost + other
  const why = Object.entries(reasons).map(([reason, times]) => `${reason}: ${count(times)}`)
  const bad = [
    lost > 0 ? `${count(lost)} lost` : '',
    refused > 0 ? `${count(refused)} refused with a time to come back` : '',
    other > 0 ? `${count(other)} answered otherwise` : '',
  ].filter((part) => part !== '')
  const rest =
    bad.length === 0 ? 'No login was lost or refused.' : `Of ${count(all)}, ${list(bad)} (${why.join(', ')}).`
  if (success === 0) return `No login succeeded. ${rest}`
  const took = `a login took ${milliseconds(p50Ms, timeoutS)} at p50 and ${milliseconds(p99Ms, timeoutS)} at p99`
  return `${rate(perSecond)} logins a second succeeded; ${took}. ${rest}`
}

function ofProbe({ name, calm, storm, after }: ProbeResult, { settings: { timeoutS, p99Ms: limitMs } }: StormResult) {
  const ms = (value: number | undefined) => milliseconds(value, timeoutS)
  if (storm.p99Ms === undefined) return `${name} was not measured in the storm.`
  const lost = storm.lost > 0 ? `, and ${count(storm.lost)} of ${count(storm.asked)} had no good answer` : ''
  const afterwards = after.p99Ms === undefined ? '' : ` and ${ms(after.p99Ms)} after it`
  const may = storm.p99Ms > limitMs ? 'more than' : 'within'
  return (
    `${name} took ${ms(storm.p99Ms)} at p99 in the storm${lost}: ${may} the ${ms(limitMs)} that it may. ` +
    `It took ${ms(calm.p99Ms)} before the storm${afterwards}.`
  )
}

function calmAgain({ probes, interrupted }: StormResult): string[] {
  if (interrupted || probes.length === 0) return []
  const late = probes.filter(({ calmAgainMs }) => calmAgainMs === undefined)
  if (late.length > 0) {
    return [
      `${list(late.map(({ name }) => name))} had not become as quick as before when this program stopped waiting.`,
    ]
  }
  const longestMs = Math.max(...probes.map(({ calmAgainMs = 0 }) => calmAgainMs))
  if (longestMs === 0) return ['As soon as the last login had ended, the probes were as quick as before.']
  return [`The probes were as quick as before ${seconds(longestMs / 1_000)} after the last login.`]
}

/** Of the limit: from this on, the lateness of this program must be told. */
const NOTABLE_PART = 0.25

function ofThisProgram({ generator: { lateP99Ms = 0 }, settings: { p99Ms } }: StormResult): string[] {
  if (lateP99Ms < NOTABLE_PART * p99Ms) return []
  return [
    `This program itself sent probes up to ${milliseconds(lateP99Ms)} late (p99), because the machine was busy: ` +
      'that is a part of what they took.',
  ]
}
