// `pnpm load spike --target`: a spike on a running gateway, to be watched on its live page. The
// gateway is on this machine, unless another one was allowed.
import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { ask } from '@spillway/infra/harness/api-client'
import { UserError } from '@spillway/infra/processes/command-line'
import { emailOf, seeded } from '@spillway/infra/services/query'
import { closedLoop } from '../load/open-loop.ts'
import { arrivals, type Visit, Visitor, type VisitorOptions } from '../load/visit.ts'
import { quantile } from '../measure/quantile.ts'

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

interface SpikeResult {
  rate: number
  seconds: number
  startMs: number
  visits: Visit[]
}

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
  const { url, users, password, durationS, signal, report } = options
  const person = {
    urls: [url],
    login: (n) => ({ email: emailOf(seeded.name, (n % users) + 1), password }),
    // Of the range that is set aside for load tests (RFC 2544): 131,072 addresses.
    headers: (n) => ({ 'x-forwarded-for': `198.${18 + ((n >> 16) & 1)}.${(n >> 8) & 255}.${n & 255}` }),
    everyNthWrong: 0,
    timeoutMs: ANSWER_MS,
    signal,
  } satisfies VisitorOptions
  await tryAccounts(new Visitor(person), options)
  const rate = options.rate ?? (await findRate(new Visitor(person), options))
  const count = Math.round(rate * durationS)
  if (count > users * LOGINS_AN_ACCOUNT)
    throw new UserError(
      `${count} people on ${users} accounts would run into the limit of each account: seed more of them, or send fewer.`,
    )

  const result: SpikeResult = { rate, seconds: durationS, startMs: performance.now(), visits: [] }
  const elapsedS = () => (performance.now() - result.startMs) / 1_000
  const reporting = setInterval(() => {
    report(`${elapsedS().toFixed(0)} s: ${result.visits.filter(isIn).length} are in`)
  }, REPORT_MS)
  const people = new Visitor({ ...person, tries: Number.POSITIVE_INFINITY, patienceMs: PATIENCE_MS })
  await arrivals(people, { perSecond: rate, seconds: durationS, signal, visits: result.visits })
  clearInterval(reporting)
  result.seconds = Math.min(durationS, elapsedS())
  return result
}

/** Tries the first account and the last, so that a missing seed is told in one sentence. */
async function tryAccounts(people: Visitor, { url, users }: TargetSpike): Promise<void> {
  const { status } = await ask(url, '/healthz')
  if (status !== 200) throw new UserError(`No gateway answers at ${url}: run "pnpm start" first.`)
  for (const person of [0, users - 1]) {
    const visit = await people.visit(person)
    if (visit.status === 401) {
      throw new UserError(
        `${emailOf(seeded.name, person + 1)} cannot log in: run "pnpm seed --users ${users}" first, or say with --users how many ` +
          'accounts there are.',
      )
    }
    if (visit.status === 429) throw new UserError(`${url} limits these accounts at present: try again in a minute.`)
    if (!isIn(visit)) throw new UserError(`A first login at ${url} did not succeed: is there a worker?`)
  }
  people.leave()
}

/** So many times the logins a second that a few callers get, each account once. */
async function findRate(people: Visitor, { users, signal, report }: TargetSpike): Promise<number> {
  report(`looking for ${MEASURE_MS / 1_000} s at how much it can do`)
  const startMs = performance.now()
  let [begun, letIn] = [0, 0]
  await closedLoop({
    callers: MEASURE_CALLERS,
    isOver: () => begun >= users || performance.now() - startMs >= MEASURE_MS || signal.aborted,
    call: async () => {
      if (isIn(await people.visit(begun++))) letIn++
    },
  })
  people.leave()
  const perSecond = (letIn * 1_000) / (performance.now() - startMs)
  return Math.round(Math.min(Math.max(TIMES_CAPACITY * perSecond, RATE_MIN), RATE_MAX))
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

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
  const hostname = url.hostname.replace(/^\[|\]$/g, '')
  const addresses = await lookup(hostname, { all: true }).catch(() => [])
  const [first] = addresses
  if (first === undefined) throw new UserError(`There is no host "${hostname}".`)
  if (beyondLoopback) return url.origin
  const elsewhere = addresses.find(({ address }) => !loopback.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4'))
  if (elsewhere !== undefined)
    throw new UserError(
      `${hostname} is not this machine (${elsewhere.address}): a spike goes to others only with --beyond-loopback, and only where ` +
        'you may send one.',
    )
  url.hostname = first.family === 6 ? `[${first.address}]` : first.address
  return url.origin
}

// The result of a spike in words.

const count = (value: number): string => Math.round(value).toLocaleString('en')
const seconds = (ms: number): string => (ms / 1_000).toFixed(1)

const isIn = ({ end }: Visit): boolean => end === 'answered'
const cameBack = ({ refusals, failures, ticketsLost }: Visit): boolean => refusals + failures + ticketsLost > 0
/** Stopped by a limit of addresses or accounts. */
const isLimited = ({ end, status }: Visit): boolean => end === 'refused' && status === 429
const gaveUp = ({ end, status }: Visit): boolean => end === 'lost' || (end === 'refused' && status !== 429)
export const isError = ({ end }: Visit): boolean => end === 'failed' || end === 'wrong'

const lines: [words: string, is: (visit: Visit) => boolean][] = [
  ['logged in at once', (visit) => isIn(visit) && !cameBack(visit) && !visit.ticketed],
  ['logged in with a ticket', (visit) => isIn(visit) && !cameBack(visit) && visit.ticketed],
  ['logged in after coming back', (visit) => isIn(visit) && cameBack(visit)],
  ['gave up, or lost their ticket', gaveUp],
  ['stopped by a limit (429)', isLimited],
  ['errors', isError],
]

export function inWords({ rate, seconds: forS, startMs, visits }: SpikeResult): string {
  const letIn = visits.filter(isIn)
  const endsMs = letIn.map(({ dueMs, tookMs }) => dueMs + tookMs - startMs)
  const lastMs = Math.max(...endsMs, 1)
  const sentAway = visits.filter(({ refusals }) => refusals > 0).length
  const met = visits.filter(({ failures }) => failures > 0).length
  const rows = lines.map(([words, is]) => {
    const some = visits.filter(is)
    const tookMs = some.map((visit) => visit.tookMs)
    const quartiles = [0.25, 0.5, 0.75, 1].map((part) => seconds(quantile(tookMs, part) ?? 0)).join(' · ')
    const after = some.some(isIn) ? `   after ${quartiles} s` : ''
    return `  ${words.padEnd(30)}${count(some.length).padStart(8)}${after}`
  })
  return [
    `${count(visits.length)} people came in ${forS.toFixed(0)} s, ${count(rate)} a second:`,
    `${((100 * letIn.length) / Math.max(visits.length, 1)).toFixed(1)} % got in, the last one ${seconds(lastMs)} s after the first came; ` +
      `${count(sentAway)} were sent away on the way, ${count(met)} met a failure.`,
    '',
    ...rows,
    '',
    `  got in, by time ${barsOf(endsMs.map((ms) => ms / lastMs))} ${seconds(lastMs)} s`,
    '  Times are quartiles and the slowest, from when each person came.',
    ...(visits.some(isLimited) ? ['', LIMITED] : []),
  ].join('\n')
}

const BARS = ' ▁▂▃▄▅▆▇█'
const COLUMNS = 48

/** A line of bars: how many of these shares of the time fall into each part of it. */
function barsOf(shares: readonly number[]): string {
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
