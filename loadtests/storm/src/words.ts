// A storm in sentences, and in a table of what each probe took before it, in it and after it.
import type { ProbeResult, StormResult } from './storm.ts'

export const phases = ['calm', 'storm', 'after'] as const

/** Columns of each phase, in the order of the phases. */
export function table({ probes, settings: { timeoutS } }: StormResult) {
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

// Figures as people read them.

const decimals = (value: number, digits: number) =>
  value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })

/** `2.4 ms`, `2,410 ms`, `≥ 10,000 ms` at the time limit; a dash without a measurement. */
export function milliseconds(value: number | undefined, timeoutS = Number.POSITIVE_INFINITY): string {
  if (value === undefined) return '–'
  if (value >= timeoutS * 1_000) return `≥ ${decimals(value, 0)} ms`
  return `${decimals(value, value < 9.95 ? 1 : 0)} ms`
}

export function seconds(value: number): string {
  const tenths = Math.round(value * 10) / 10
  return `${decimals(tenths, tenths < 10 && !Number.isInteger(tenths) ? 1 : 0)} s`
}

function rate(perSecond: number): string {
  return decimals(perSecond, perSecond < 99.95 ? 1 : 0)
}

export function count(value: number): string {
  return decimals(value, 0)
}

/** `a`, `a and b`, `a, b and c`. */
export function list(parts: readonly string[]): string {
  const last = parts.at(-1) ?? ''
  return parts.length < 2 ? last : `${parts.slice(0, -1).join(', ')} and ${last}`
}
