// Crowds of callers that ask again at once, their effect on everyone else; five thousand users.
import { setTimeout as sleep } from 'node:timers/promises'
import { type ApiAnswer, createApiClient, redeemUntilAnswered, TIMEOUT_MS } from '@spillway/infra/rig/api-client'
import { closedLoop } from '@spillway/infra/rig/open-loop'
import type { Running } from '../contenders/contender.ts'
import { type Algorithm, algorithms, costOf } from '../contenders/hashing.ts'
import type { Credential } from '../load/accounts.ts'
import { ClosedLoop, followsTickets } from '../load/closed.ts'
import { Probe } from '../measure/probe.ts'
import { outcomeOf, percentiles, Tally } from '../measure/tally.ts'
import type { Measured } from '../src/results.ts'
import { ofContenders, ofPipeline, picked, type Scenario, type Setting } from './scenario.ts'

/** Of each bystander, per second: enough for a p99 in ten seconds, for a hundredth of a core. */
const BYSTANDERS_PER_SECOND = 40

/**
 * Logins in a closed loop, and the latency of two bystanders meanwhile: an endpoint that asks the
 * file system, and one that asks nothing at all.
 */
async function observe(running: Running, logins: () => Promise<{ tally: Tally; seconds: number }>) {
  const client = createApiClient(running.url)
  const ask = (path: string) => new Probe({ perSecond: BYSTANDERS_PER_SECOND, ask: () => client.get(path) }).start()
  const [neighbour, healthz] = [ask(running.neighbourPath), ask('/healthz')]
  const stop = () => Promise.all([neighbour.stop(), healthz.stop()])
  try {
    const [before, startMs] = [process.cpuUsage(), performance.now()]
    const { tally, seconds } = await logins()
    const { user, system } = process.cpuUsage(before)
    /** Of a core, used by this process. Near a hundred, the figures measure the generator. */
    const generatorPercent = (user + system) / 10 / (performance.now() - startMs)
    await stop()
    return {
      tally,
      figures: {
        perSecond: tally.counts.ok / seconds,
        ...percentiles(tally.waitedMs),
        failedPercent: tally.share('timeout', 'error'),
        ...percentiles(neighbour.tookMs, 'neighbourP'),
        ...percentiles(healthz.tookMs, 'healthzP'),
        generatorPercent,
      },
    }
  } finally {
    await stop()
    client.close()
  }
}

const USERS = 100

/** The callers do not all arrive in the same millisecond. */
const ARRIVE_MS = 1_000

async function crowd({ accounts, users = USERS, durationS }: Setting, running: Running, algorithm: Algorithm) {
  const caller = followsTickets((number) => accounts.login(algorithm, number))
  const loop = new ClosedLoop({ url: running.url, callers: users, caller, arriveMs: ARRIVE_MS })
  try {
    await loop.start()
    const { figures } = await observe(running, () => loop.countFor(durationS))
    return { figures }
  } finally {
    await loop.close()
  }
}

/** The NestJS post's test: a hundred users log in again and again beside the rest of the API. */
export const login100: Scenario = {
  name: 'login-100',
  title: 'A hundred users log in',
  question: 'What do a hundred users who log in over and over get, and what does everyone else on the same API?',
  durationS: 4,
  settings: ({ users = USERS }) => ({ users, ...costOf }),
  plan: (setting) =>
    algorithms.flatMap((algorithm) => {
      const few = picked(setting, ['in-process', 'piscina', 'spillway'])
      const contenders = algorithm === 'bcrypt' ? few : setting.contenders
      return ofContenders(setting, { contenders, algorithm }, (running) => crowd(setting, running, algorithm))
    }),
}

// Five thousand users at once: how many still get an answer, and how many a second.

const MANY = 5_000

export const stress5000: Scenario = {
  name: 'stress-5000',
  title: 'Five thousand users arrive',
  question: 'When five thousand users log in at once, who gets an answer in time, and how many a second?',
  durationS: 8,
  settings: ({ users = MANY }) => ({ users, timeoutMs: TIMEOUT_MS, argon2id: costOf.argon2id }),
  plan: (setting) => [
    ...ofContenders(setting, { contenders: picked(setting), callers: setting.users ?? MANY }, (running) =>
      stress(running, setting, 'argon2id'),
    ),
    // The pipeline alone, without a hash: no contender, and marked as such.
    ...ofPipeline(setting, (running) => stress(running, setting, 'token')),
  ],
}

async function stress(running: Running, setting: Setting, credential: Credential): Promise<Measured> {
  const { tally, figures } = await observe(running, () => patientUsers(running.url, setting, credential))
  return {
    figures: { ...figures, answeredPercent: tally.share('ok', 'ticket', 'busy') },
    series: { outcomes: [{ ...tally.counts }] },
  }
}

/**
 * Users as good clients: one connection each, back as told, redeeming tickets, and starting over
 * until the time is over. Every request counts, a redemption with the time since its login.
 */
async function patientUsers(url: string, { users = MANY, durationS, accounts }: Setting, credential: Credential) {
  const tally = new Tally()
  const client = createApiClient(url)
  const [startMs, durationMs] = [performance.now(), durationS * 1_000]
  const elapsedMs = () => performance.now() - startMs

  async function counted(request: Promise<ApiAnswer>, sinceMs: number): Promise<ApiAnswer> {
    const answer = await request
    tally.record(outcomeOf(answer), elapsedMs() - sinceMs, Math.floor(elapsedMs() / 1_000))
    return answer
  }

  await closedLoop({
    callers: users,
    arriveMs: durationMs / 2,
    isOver: () => elapsedMs() >= durationMs,
    async call(user) {
      const sentMs = elapsedMs()
      const first = await counted(client.login(accounts.login(credential, user)), sentMs)
      const redeem = (ticket: string) => counted(client.redeem(ticket), sentMs)
      const answer = await redeemUntilAnswered(first, { redeem, endMs: startMs + durationMs })
      if (['busy', 'error'].includes(outcomeOf(answer)))
        await sleep(Math.min(answer.retryAfterMs, Math.max(durationMs - elapsedMs(), 0)))
    },
  })
  client.close()
  return { tally, seconds: elapsedMs() / 1_000 }
}
