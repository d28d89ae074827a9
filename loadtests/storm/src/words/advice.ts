// What to do, chosen by what was measured.
import type { PhaseFigures, ProbeResult, StormResult } from '../result.ts'
import { count, list, milliseconds } from './figures.ts'

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
    slowed.length > 0 && hashElsewhere(slowed),
    lost > 0 && hashMore(result),
    refused > all / 2 && mostlyRefused(slowed),
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

function hashElsewhere(probes: readonly ProbeResult[]): Advice {
  return {
    text:
      `${names(probes)} kept within the limit until people logged in. A storm does not see why; if a login hashes a password in the ` +
      'process that answers, change one import, so that a process beside it hashes, and storm again:',
    code: [
      "import bcrypt from '@spillway/client/bcrypt'   // instead of 'bcrypt'",
      "import argon2 from '@spillway/client/argon2'   // instead of 'argon2'",
      "import { createPasswords } from '@spillway/client'   // instead of others",
    ],
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

function mostlyRefused(slowed: readonly ProbeResult[]): Advice {
  const less = slowed.length > 0 ? '' : ' Nor does it say that probes stay quick when they are let in.'
  return {
    text:
      'Most logins were refused, so this storm says little about logins that are let in.' +
      `${less} If a limit for each address refused them, lift it for the storm; if too little hashes, add workers.`,
  }
}

function otherAnswers({ logins: { other } }: StormResult): Advice {
  return {
    text:
      `${count(other)} logins had an answer that was not expected. If it is one of success, name it with --expect; if users are ` +
      'missing, storm with fewer of them (--users).',
  }
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
