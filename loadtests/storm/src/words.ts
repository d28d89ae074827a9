// A storm in words, for the terminal and the report: sentences, a table, and what to do.
import type { PhaseFigures } from './result.ts'
import type { ProbeResult, StormResult } from './storm.ts'

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

// What to do, chosen by what was measured.

interface Advice {
  text: string
  code?: readonly string[]
  more?: string
}

const README = 'README of @spillway/client'

export function advice(result: StormResult): Advice[] {
  const { success, refused, lost, other } = result.logins
  const all = success + refused + lost + other
  if (all === 0) return []
  const { slowed, slowBefore, within } = judge(result)
  const given = [
    slowBefore.length > 0 && slowAnyway(slowBefore, result),
    slowed.length > 0 && hashElsewhere(slowed, within),
    lost > 0 && (mostOf(result, isFailure) === 'timeout' ? hashMore(result) : brokenOff(result)),
    refused > all / 2 && mostlyRefused(result, slowed),
    other > 0 && otherAnswers(result),
    result.probes.length === 0 && withoutProbes,
  ].filter((each) => each !== false)
  const isFine = within.length > 0 && within.length === result.probes.length && success > 0 && !result.interrupted
  return given.length === 0 && isFine ? [nothingToDo(result)] : given
}

const names = (probes: readonly ProbeResult[]) => list(probes.map(({ name }) => name))

function slowAnyway(probes: readonly ProbeResult[], { settings: { p99Ms } }: StormResult): Advice {
  const it = probes.length === 1 ? 'it' : 'them'
  return {
    text:
      `${names(probes)} took more than ${milliseconds(p99Ms)} before anyone logged in, so this storm says nothing about what logins, ` +
      `or hashing, do to ${it}. Find out what is slow there first, or allow ${it} more with --p99.`,
  }
}

const instead = {
  bcrypt: "import bcrypt from '@spillway/client/bcrypt'   // instead of 'bcrypt'",
  argon2: "import argon2 from '@spillway/client/argon2'   // instead of 'argon2'",
  bcryptjs: "import bcrypt from '@spillway/client/bcryptjs'   // instead of 'bcryptjs'",
  others: "import { createPasswords } from '@spillway/client'   // instead of others, and of Sync functions",
}

/** By whether other probes stayed quick: what they had in common with the slow ones was free. */
function hashElsewhere(slowed: readonly ProbeResult[], within: readonly ProbeResult[]): Advice {
  const { bcrypt, argon2, bcryptjs, others } = instead
  const [found, code] =
    within.length > 0
      ? [
          `${names(within)} stayed quick, so the process answers, and something that the others need is taken: threads of libuv's pool, ` +
            'where bcrypt and argon2 hash and files are read, or connections to a database. If a login hashes there,',
          [bcrypt, argon2, others],
        ]
      : slowed.length > 1
        ? [
            'No probe stayed quick, so the event loop or the processors were busy: bcryptjs and Sync functions hash on the event loop. If a ' +
              'login hashes in the process that answers,',
            [bcryptjs, bcrypt, argon2, others],
          ]
        : [
            'One probe does not show why; another, of an endpoint that only answers, would. If a login hashes a password in the process ' +
              'that answers,',
            [bcrypt, argon2, bcryptjs, others],
          ]
  return {
    text: `${names(slowed)} kept within the limit until people logged in. ${found} change one import, so that a process beside it hashes, and storm again:`,
    code,
    more: `${README}, "Instead of bcrypt and argon2"`,
  }
}

function hashMore({ logins: { lost } }: StormResult): Advice {
  return {
    text:
      `${count(lost)} logins had no answer. If they waited for their hash, hash as many as the processors do and refuse the others ` +
      'at once with a time to come back: so do createPasswords() and the replacements. For more logins a second, give them workers on ' +
      'other processors by settings alone, as many as it takes:',
    code: ['createPasswords({ redis: process.env.REDIS_URL, sealKeys: process.env.SPILLWAY_SEAL_KEYS })'],
    more: `${README}, "With a queue"`,
  }
}

function brokenOff(result: StormResult): Advice {
  return {
    text:
      `${count(result.logins.lost)} logins had no answer, most by ${mostOf(result, isFailure)}: the application, or what is before it, closed or ` +
      'refused connections. See whether it was restarted, ran out of memory or open files, or has a limit of connections.',
  }
}

/** What is to be done about refusals, by their status. */
const refusals: Readonly<Record<string, string>> = {
  202: 'They were accepted for later, and a storm redeems no tickets: count in the application who got in. For fewer, add workers.',
  429:
    'A limit refused them. If it is one for each address, lift it for the storm, or send addresses of their own where the application ' +
    "believes them: --header 'x-forwarded-for: 198.18.0.{n}'",
  503: 'Too little hashes for so many: add workers, or storm with fewer users (--users) to see what is done meanwhile.',
}

function mostlyRefused(result: StormResult, slowed: readonly ProbeResult[]): Advice {
  const less = slowed.length > 0 ? '' : ' Nor does it say that probes stay quick when they are let in.'
  const most = mostOf(result, (reason) => reason in refusals)
  return {
    text: `Most logins were refused, so this storm says little about logins that are let in.${less} ${refusals[most]}`,
  }
}

function otherAnswers(result: StormResult): Advice {
  const status = Number(mostOf(result, (reason) => !isFailure(reason)))
  const todo =
    status >= 500
      ? 'The application failed: its log says why.'
      : status === 401 || status === 403
        ? 'Users are missing, or their sessions or forms need a token: storm with as many users as there are (--users).'
        : 'If it is one of success, name it with --expect.'
  return {
    text: `${count(result.logins.other)} logins had an answer that was not expected, most of them ${status}. ${todo}`,
  }
}

/** Whether it is why there was no answer; else it is a status. */
function isFailure(reason: string): boolean {
  return !/^\d+$/.test(reason)
}

/** The most frequent of these reasons. */
function mostOf({ logins: { reasons } }: StormResult, isMeant: (reason: string) => boolean): string {
  const meant = Object.entries(reasons).filter(([reason]) => isMeant(reason))
  return meant.sort(([, one], [, other]) => other - one)[0]?.[0] ?? ''
}

const withoutProbes: Advice = {
  text: 'Nothing is known about other endpoints. Name some with --probe, best one that reads a file or asks the database.',
}

function nothingToDo({ settings: { users, p99Ms } }: StormResult): Advice {
  return {
    text:
      `Every probe stayed within ${milliseconds(p99Ms)} while ${count(users)} users logged in: nothing has to change for that many. ` +
      'To see where it ends, storm with more (--users).',
  }
}

/** A probe that was not measured, because the storm was interrupted, is in no list. */
function judge({ probes, settings: { p99Ms: limitMs } }: StormResult) {
  const measured = probes.filter(({ calm, storm }) => calm.p99Ms !== undefined && storm.p99Ms !== undefined)
  const isOver = ({ p99Ms = 0 }: PhaseFigures) => p99Ms > limitMs
  const calm = measured.filter((probe) => !isOver(probe.calm))
  return {
    slowed: calm.filter(({ storm }) => isOver(storm)),
    /** Over the limit before anyone logged in: the storm says nothing about them. */
    slowBefore: measured.filter((probe) => isOver(probe.calm)),
    within: calm.filter(({ storm }) => !isOver(storm)),
  }
}

/** The probes that took more than they may in the storm. */
export function missed({ probes, settings: { p99Ms: limitMs } }: StormResult): ProbeResult[] {
  return probes.filter(({ storm: { p99Ms = 0 } }) => p99Ms > limitMs)
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
function list(parts: readonly string[]): string {
  const last = parts.at(-1) ?? ''
  return parts.length < 2 ? last : `${parts.slice(0, -1).join(', ')} and ${last}`
}
