// `pnpm load spike --target`: a spike on a running gateway, to be watched on its live page. The
// gateway is on this machine, unless another one was allowed.
import { UserError } from '@spillway/infra/processes/command-line'
import { ask } from '@spillway/infra/rig/api-client'
import { closedLoop } from '@spillway/infra/rig/open-loop'
import { quantile } from '@spillway/infra/rig/quantile'
import { seedEmail } from '@spillway/prisma/seed'
import { arrivals, type Visit, Visitor, type VisitorOptions } from '../load/visit.ts'
import { judgeHost } from '../storm/src/target.ts'

interface TargetSpike {
  url: string
  /** How many accounts `pnpm seed` made; people beyond that share them. */
  users: number
  password: string
  durationS: number
  /** People a second; without it, so many times what was found to be possible. */
  rate: number | undefined
  /** Ends the arrivals and the waiting; the result holds what is known by then. */
  signal: AbortSignal
  report(line: string): void
}

/**
 * How a visit ends: let in at once, by a ticket, or after being sent away; given up; stopped by a
 * limit (429); unknown (401); left with an expired ticket (410); or anything else.
 */
type End = 'atOnce' | 'byTicket' | 'afterRefusal' | 'gaveUp' | 'limited' | 'unknown' | 'expired' | 'error'

interface SpikeResult {
  rate: number
  seconds: number
  people: number
  /** For each person: the end, the wait since due, and the end since the first was due, in ms. */
  visits: { end: End; tookMs: number; endedMs: number; wasSentAway: boolean; metFailure: boolean }[]
}

const letInEnds = ['atOnce', 'byTicket', 'afterRefusal'] as const satisfies End[]

/** Above what the workers do, and yet all can be answered while their tickets live (300 s). */
const TIMES_CAPACITY = 5
const RATE_MIN = 20
/** One process sends no more on time. */
export const RATE_MAX = 2_000
export const DURATION_MAX_S = 60
/** An account may log in 20 times a minute. */
const LOGINS_AN_ACCOUNT = 10

const MEASURE_MS = 2_000
const MEASURE_CALLERS = 20
/** A held login is answered after LOGIN_WAIT_MS [8 s] at the latest. */
const ANSWER_MS = 30_000
/** Tickets live for five minutes, unless TICKET_TTL_MS says otherwise. */
const PATIENCE_MS = 330_000
const REPORT_MS = 500

/** Rejects with a UserError where no gateway answers, or accounts of `pnpm seed` are missing. */
export async function spikeTarget(options: TargetSpike): Promise<SpikeResult> {
  const { url, users, password, durationS, signal } = options
  const people = {
    urls: [url],
    login: (person) => ({ email: seedEmail((person % users) + 1), password }),
    headers: (person) => ({ 'x-forwarded-for': addressOf(person) }),
    everyNthWrong: 0,
    timeoutMs: ANSWER_MS,
    signal,
  } satisfies VisitorOptions
  const [once, patient] = [
    new Visitor(people),
    new Visitor({ ...people, tries: Number.POSITIVE_INFINITY, patienceMs: PATIENCE_MS }),
  ]
  try {
    await tryAccounts(once, options)
    const rate = options.rate ?? (await findRate(once, options))
    const count = Math.round(rate * durationS)
    if (count > users * LOGINS_AN_ACCOUNT)
      throw new UserError(
        `${count} people on ${users} accounts would run into the limit of each account: seed more of them, or send fewer.`,
      )
    return await run(patient, rate, options)
  } finally {
    for (const visitor of [once, patient]) visitor.close()
  }
}

async function run(people: Visitor, rate: number, { durationS, signal, report }: TargetSpike): Promise<SpikeResult> {
  const result: SpikeResult = { rate, seconds: durationS, people: 0, visits: [] }
  const startMs = performance.now()
  const reporting = setInterval(() => report(standing(result, performance.now() - startMs)), REPORT_MS)
  const visit = async (person: number, dueMs: number) => {
    result.people++
    const ended = await people.visit(person, dueMs)
    const { tookMs, sentAway, failures } = ended
    const met = { wasSentAway: sentAway.length > 0, metFailure: failures > 0 }
    result.visits.push({ end: endOf(ended), tookMs, endedMs: dueMs + tookMs - startMs, ...met })
    return ended
  }
  await arrivals({ perSecond: rate, seconds: durationS, signal, visit }).finally(() => clearInterval(reporting))
  return { ...result, seconds: Math.min(durationS, (performance.now() - startMs) / 1_000) }
}

function endOf({ end, ticketed, sentAway, failures, status }: Visit): End {
  if (end === 'verdict' && sentAway.length + failures > 0) return 'afterRefusal'
  if (end === 'verdict') return ticketed ? 'byTicket' : 'atOnce'
  if (end === 'lost') return status === 410 || status === 409 ? 'expired' : 'gaveUp'
  if (status === 503) return 'gaveUp'
  if (status === 429) return 'limited'
  return status === 401 ? 'unknown' : 'error'
}

export function ended({ visits }: SpikeResult, ...some: readonly End[]) {
  return visits.filter(({ end }) => some.includes(end))
}

function standing(result: SpikeResult, elapsedMs: number): string {
  const waiting = result.people - result.visits.length
  const letIn = ended(result, ...letInEnds).length
  return `${Math.round(elapsedMs / 1_000)} s: ${result.people} people came, ${letIn} are in, ${waiting} wait`
}

/** Tries the first account and the last, so that a missing seed is told in one sentence. */
async function tryAccounts(people: Visitor, { url, users }: TargetSpike): Promise<void> {
  const { status } = await ask(url, '/healthz')
  if (status !== 200) throw new UserError(`No gateway answers at ${url}: run "pnpm start" first.`)
  for (const person of [0, users - 1]) {
    const end = endOf(await people.visit(person))
    if (end === 'unknown') {
      throw new UserError(
        `user-${person + 1}@example.test cannot log in: run "pnpm seed --users ${users}" first, or say with --users how many ` +
          'accounts there are.',
      )
    }
    if (end === 'limited') throw new UserError(`${url} limits these accounts at present: try again in a minute.`)
    if (end !== 'atOnce' && end !== 'byTicket')
      throw new UserError(`A first login at ${url} did not succeed: is there a worker?`)
  }
}

/** So many times the logins a second that a few callers get, each account once. */
async function findRate(people: Visitor, { users, signal, report }: TargetSpike): Promise<number> {
  report(`looking for ${MEASURE_MS / 1_000} s at how much it can do`)
  const startMs = performance.now()
  let begun = 0
  let letIn = 0
  await closedLoop({
    callers: MEASURE_CALLERS,
    isOver: () => begun >= users || performance.now() - startMs >= MEASURE_MS || signal.aborted,
    call: async () => {
      if (endOf(await people.visit(begun++)) === 'atOnce') letIn++
    },
  })
  const perSecond = (letIn * 1_000) / (performance.now() - startMs)
  return Math.round(Math.min(Math.max(TIMES_CAPACITY * perSecond, RATE_MIN), RATE_MAX))
}

/** An address of the range that is set aside for load tests (RFC 2544): 131,072 of them. */
function addressOf(person: number): string {
  return `198.${18 + ((person >> 16) & 1)}.${(person >> 8) & 255}.${person & 255}`
}

/**
 * The URL to dial. The name of this machine is replaced by its judged address.
 * @throws {@link UserError} for what is no `http://host:port`, or not this machine without
 * `beyondLoopback`
 */
export async function resolveTarget(target: string, beyondLoopback: boolean): Promise<string> {
  const url = URL.canParse(target) ? new URL(target) : undefined
  if (url?.protocol !== 'http:' || url.pathname !== '/' || url.search !== '' || url.username !== '') {
    throw new UserError(`--target takes the address of a gateway, such as http://127.0.0.1:3000, not "${target}".`)
  }
  const { addresses } = await judgeHost(url.hostname, beyondLoopback, 'a spike')
  const [first] = addresses
  if (beyondLoopback || first === undefined) return url.origin
  url.hostname = first.family === 6 ? `[${first.address}]` : first.address
  return url.origin
}

// The result of a spike in words.

const count = (value: number): string => Math.round(value).toLocaleString('en')

const seconds = (ms: number): string => (ms / 1_000).toFixed(1)

const lines: [words: string, ...ends: End[]][] = [
  ['logged in at once', 'atOnce'],
  ['logged in with a ticket', 'byTicket'],
  ['logged in after coming back', 'afterRefusal'],
  ['gave up', 'gaveUp'],
  ['stopped by a limit (429)', 'limited'],
  ['left with a ticket (expired)', 'expired'],
  ['errors', 'error', 'unknown'],
]

export function inWords(result: SpikeResult): string {
  const { people, visits } = result
  const letIn = ended(result, ...letInEnds)
  const lastMs = letIn.reduce((most, { endedMs }) => Math.max(most, endedMs), 0)
  const sentAway = visits.filter(({ wasSentAway }) => wasSentAway).length
  const met = visits.filter(({ metFailure }) => metFailure).length
  const rows = lines.map(([words, ...ends]) => {
    const tookMs = ended(result, ...ends).map(({ tookMs }) => tookMs)
    const quartiles = [0.25, 0.5, 0.75, 1].map((part) => seconds(quantile(tookMs, part) ?? 0)).join(' · ')
    const after = letInEnds.some((end) => ends.includes(end)) && tookMs.length > 0 ? `   after ${quartiles} s` : ''
    return `  ${words.padEnd(30)}${count(tookMs.length).padStart(8)}${after}`
  })
  return [
    `${count(people)} people came in ${result.seconds.toFixed(0)} s, ${count(result.rate)} a second:`,
    `${((100 * letIn.length) / Math.max(people, 1)).toFixed(1)} % got in, the last one ${seconds(lastMs)} s after the first came; ` +
      `${count(sentAway)} were sent away on the way, ${count(met)} met a failure.`,
    '',
    ...rows,
    '',
    `  got in, by time ${lineOf(letIn.map(({ endedMs }) => endedMs / Math.max(lastMs, 1)))} ${seconds(lastMs)} s`,
    '  Times are quartiles and the slowest, from when each person came.',
    ...(ended(result, 'limited').length > 0 ? ['', LIMITED] : []),
  ].join('\n')
}

const BARS = ' ▁▂▃▄▅▆▇█'
const COLUMNS = 48

/** A line of bars: how many of these shares of the time fall into each part of it. */
function lineOf(shares: readonly number[]): string {
  const columns = Array.from({ length: COLUMNS }, () => 0)
  for (const share of shares) {
    const column = Math.min(Math.floor(share * COLUMNS), COLUMNS - 1)
    columns[column] = (columns[column] ?? 0) + 1
  }
  const most = Math.max(...columns, 1)
  return columns.map((count) => BARS[Math.ceil((count / most) * (BARS.length - 1))]).join('')
}

const LIMITED =
  'Each of them came from an address of their own, in X-Forwarded-For. A gateway that does not name this machine in TRUST_PROXY\n' +
  'counts all of them as one address.'
