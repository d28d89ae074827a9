// `pnpm load spike --target`: a spike on a gateway that runs already, such as the one of `pnpm start`, for whoever watches it.
import { setMaxListeners } from 'node:events'
import { type ApiClient, createApiClient } from '@spillway/local/testing/api-client'
import { openLoop } from '../load/open.ts'
import { type Crowd, type End, ends, visit } from './person.ts'
import { BadTarget } from './target.ts'

export interface TargetSpike {
  /** What resolveTarget() gave. */
  url: string
  /** How many accounts there are. */
  users: number
  password: string
  durationS: number
  /** People a second; without it, so many times what was found to be possible. */
  rate: number | undefined
  /** Ends the arrivals and the waiting; what is known by then is told. */
  signal: AbortSignal
  /** Where it stands, for a terminal. */
  report(line: string): void
}

export interface SpikeResult {
  rate: number
  seconds: number
  people: number
  /** Of those who came: how many ended so, and what the slowest of them waited, in milliseconds from when they were due. */
  ends: Record<End, { people: number; slowestMs: number }>
}

/** Above what the workers do, and yet all can be answered while their tickets live (60 s). */
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
/** Tickets live for a minute, unless TICKET_TTL_MS says otherwise. */
const TICKETS_END_MS = 90_000
const REPORT_MS = 500

/** @throws {@link BadTarget} before the spike, when no gateway answers there or the accounts are not those of `pnpm seed` */
export async function spikeTarget(options: TargetSpike): Promise<SpikeResult> {
  const { url, users, password, durationS, signal } = options
  const client = createApiClient(url, { timeoutMs: ANSWER_MS })
  const over = new AbortController()
  // One for each person with a ticket.
  setMaxListeners(0, over.signal)
  signal.addEventListener('abort', () => over.abort(), { once: true })
  try {
    const crowd = { client, users, password, signal: over.signal }
    await tryAccounts(crowd, url)
    const rate = options.rate ?? (await findRate(crowd, options.report))
    refuseCrowded(rate * durationS, users)
    return await run(crowd, rate, options, over)
  } finally {
    client.close()
  }
}

async function run(
  crowd: Crowd,
  rate: number,
  { durationS, signal, report }: TargetSpike,
  over: AbortController,
): Promise<SpikeResult> {
  const durationMs = durationS * 1_000
  const result: SpikeResult = { rate, seconds: durationS, people: 0, ends: nobody() }
  const startMs = performance.now()
  const reporting = setInterval(() => report(standing(result, performance.now() - startMs)), REPORT_MS)
  const patience = setTimeout(() => over.abort(), durationMs + TICKETS_END_MS)
  try {
    await openLoop({
      rateAt: () => rate,
      durationMs,
      signal,
      send: async (dueMs) => {
        const end = await visit(crowd, result.people++)
        const counted = result.ends[end]
        counted.people++
        counted.slowestMs = Math.max(counted.slowestMs, performance.now() - dueMs)
      },
    })
  } finally {
    clearInterval(reporting)
    clearTimeout(patience)
  }
  return { ...result, seconds: Math.min(durationS, (performance.now() - startMs) / 1_000) }
}

function nobody(): SpikeResult['ends'] {
  const none = () => ({ people: 0, slowestMs: 0 })
  return {
    atOnce: none(),
    byTicket: none(),
    busy: none(),
    limited: none(),
    unknown: none(),
    expired: none(),
    error: none(),
  }
}

function standing(result: SpikeResult, elapsedMs: number): string {
  const ended = ends.reduce((sum, end) => sum + result.ends[end].people, 0)
  const letIn = result.ends.atOnce.people + result.ends.byTicket.people
  return `${Math.round(elapsedMs / 1_000)} s: ${result.people} people came, ${letIn} are in, ${result.people - ended} wait`
}

/** The first account and the last, so that a missing seed is told in one sentence instead of thousands of errors. */
async function tryAccounts(crowd: Crowd, url: string): Promise<void> {
  await expectGateway(crowd.client, url)
  for (const person of [0, crowd.users - 1]) {
    const end = await visit(crowd, person)
    if (end === 'unknown') {
      throw new BadTarget(
        `user-${person + 1}@example.test cannot log in: run "pnpm seed --users ${crowd.users}" first, or say with --users how many ` +
          'accounts there are.',
      )
    }
    if (end === 'limited') throw new BadTarget(`${url} limits these accounts at present: try again in a minute.`)
    if (end !== 'atOnce' && end !== 'byTicket')
      throw new BadTarget(`A first login at ${url} did not succeed: is there a worker?`)
  }
}

async function expectGateway(client: ApiClient, url: string): Promise<void> {
  const { status } = await client.get('/healthz')
  if (status !== 200) throw new BadTarget(`No gateway answers at ${url}: run "pnpm start" first.`)
}

/** So many times the logins a second that a few callers get, each account once. */
async function findRate(crowd: Crowd, report: (line: string) => void): Promise<number> {
  report(`looking for ${MEASURE_MS / 1_000} s at how much it can do`)
  const startMs = performance.now()
  let begun = 0
  let letIn = 0
  const caller = async () => {
    while (begun < crowd.users && performance.now() - startMs < MEASURE_MS && !crowd.signal.aborted) {
      if ((await visit(crowd, begun++)) === 'atOnce') letIn++
    }
  }
  await Promise.all(Array.from({ length: MEASURE_CALLERS }, caller))
  const perSecond = (letIn * 1_000) / (performance.now() - startMs)
  return Math.round(Math.min(Math.max(TIMES_CAPACITY * perSecond, RATE_MIN), RATE_MAX))
}

function refuseCrowded(people: number, users: number): void {
  if (people <= users * LOGINS_AN_ACCOUNT) return
  throw new BadTarget(
    `${Math.round(people)} people on ${users} accounts would run into the limit of each account: seed more of them, or send fewer.`,
  )
}
