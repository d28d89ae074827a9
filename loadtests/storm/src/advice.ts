// What to do after a storm, chosen by what was measured.
import type { PhaseFigures } from './result.ts'
import type { ProbeResult, StormResult } from './storm.ts'
import { count, list, milliseconds } from './words.ts'

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
