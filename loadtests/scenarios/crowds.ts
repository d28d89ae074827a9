// Crowds of callers, and their effect on everyone else.
import { setTimeout as sleep } from 'node:timers/promises'
import { type ApiAnswer, createApiClient, redeemUntilAnswered } from '@spillway/infra/harness/api-client'
import type { Measured } from '@spillway/loadtests/results'
import type { Running } from '../contenders/contender.ts'
import { contenders } from '../contenders/contenders.ts'
import { algorithms } from '../contenders/hashing.ts'
import { closedLoad, followsTickets } from '../load/closed.ts'
import { closedLoop } from '../load/open-loop.ts'
import { Probe } from '../measure/probe.ts'
import { outcomeOf, outcomes, percentiles, Tally } from '../measure/tally.ts'
import { ofContenders, type Scenario, type Setting } from './scenario.ts'

/** Of each bystander, per second: enough for a p99 in ten seconds, for a hundredth of a core. */
const BYSTANDERS_PER_SECOND = 40

/**
 * Two bystanders from now on: an endpoint that asks the file system, and one that asks nothing at
 * all. Then the share of a core that this process used: near a hundred, figures measure it.
 */
function watch({ url, neighbourPath }: Running) {
  const client = createApiClient(url)
  const ask = (path: string) => new Probe({ perSecond: BYSTANDERS_PER_SECOND, ask: () => client.get(path) }).start()
  const [neighbour, healthz] = [ask(neighbourPath), ask('/healthz')]
  const [before, startMs] = [process.cpuUsage(), performance.now()]
  return async () => {
    const { user, system } = process.cpuUsage(before)
    const generatorPercent = (user + system) / 10 / (performance.now() - startMs)
    await Promise.all([neighbour.stop(), healthz.stop()])
    client.close()
    return {
      ...percentiles(neighbour.tookMs, 'neighbourP'),
      ...percentiles(healthz.tookMs, 'healthzP'),
      generatorPercent,
    }
  }
}

/** How requests ended, per cent of all. */
export function ends(tally: Tally): Record<string, number> {
  return Object.fromEntries(outcomes.map((outcome) => [`${outcome}Percent`, tally.share(outcome)]))
}

const USERS = 100

/** The NestJS post's test: a hundred users log in again and again beside the rest of the API. */
export const login100: Scenario = {
  name: 'login-100',
  title: 'A hundred users log in',
  question: 'What do a hundred users who log in over and over get, and what does everyone else on the same API?',
  plan: (setting) =>
    algorithms.flatMap((algorithm) => {
      const { accounts, users = USERS, durationS = 5 } = setting
      const few = algorithm === 'argon2id' ? contenders.map(({ name }) => name) : undefined
      return ofContenders(setting, { algorithm, ...(few && { few }) }, async (running) => {
        let watched: ReturnType<typeof watch> | undefined
        const { tally, seconds } = await closedLoad({
          url: running.url,
          callers: users,
          caller: followsTickets((number) => accounts.login(algorithm, number)),
          settlingS: 1,
          countedS: durationS,
          onCounting: () => {
            watched = watch(running)
          },
        })
        const bystanders = await watched?.()
        const failedPercent = tally.share('timeout', 'error')
        return {
          figures: {
            perSecond: tally.counts.ok / seconds,
            failedPercent,
            ...percentiles(tally.waitedMs),
            ...bystanders,
          },
        }
      })
    }),
}

const MANY = 5_000

/** Five thousand users at once: how many still get an answer, and how many a second. */
export const stress5000: Scenario = {
  name: 'stress-5000',
  title: 'Five thousand users arrive',
  question: 'When five thousand users log in at once, who gets an answer in time, and how many a second?',
  plan: (setting) =>
    ofContenders(setting, { callers: setting.users ?? MANY }, async (running): Promise<Measured> => {
      const watched = watch(running)
      const { tally, seconds } = await patientUsers(running.url, setting)
      const figures = { perSecond: tally.counts.ok / seconds, ...percentiles(tally.waitedMs), ...ends(tally) }
      return { figures: { ...figures, ...(await watched()), failedPercent: tally.share('timeout', 'error') } }
    }),
}

/**
 * Users as good clients: one connection each, back as told, redeeming tickets, and starting over
 * until the time is over. Every request counts, a redemption with the time since its login.
 */
async function patientUsers(url: string, { users = MANY, durationS = 8, accounts }: Setting) {
  const tally = new Tally()
  const client = createApiClient(url)
  const [startMs, durationMs] = [performance.now(), durationS * 1_000]
  const elapsedMs = () => performance.now() - startMs

  async function counted(request: Promise<ApiAnswer>, sinceMs: number): Promise<ApiAnswer> {
    const answer = await request
    tally.record(outcomeOf(answer), elapsedMs() - sinceMs)
    return answer
  }

  await closedLoop({
    callers: users,
    arriveMs: durationMs / 2,
    isOver: () => elapsedMs() >= durationMs,
    async call(user) {
      const sentMs = elapsedMs()
      const first = await counted(client.login(accounts.login('argon2id', user)), sentMs)
      const redeem = (ticket: string) => counted(client.redeem(ticket), sentMs)
      const answer = await redeemUntilAnswered(first, { redeem, endMs: startMs + durationMs })
      if (['busy', 'error'].includes(outcomeOf(answer)))
        await sleep(Math.min(answer.retryAfterMs, Math.max(durationMs - elapsedMs(), 0)))
    },
  })
  client.close()
  return { tally, seconds: elapsedMs() / 1_000 }
}
