// The registration post's method: ten per cent more requests every step, until what is served falls ten per cent short of
// what is offered. Where that happens is the knee.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Credentials, createApiClient } from '@spillway/local/testing/api-client'
import { coreCount, type Running } from '../contenders/contender.ts'
import { costOf } from '../contenders/hashing.ts'
import { openLoop } from '../load/open.ts'
import { outcomeOf, Tally } from '../measure/tally.ts'
import type { Row } from '../src/results.ts'
import { AROUND_S, hasSpillway, type Measurement, picked, type Scenario, type Setting } from './scenario.ts'
import { withContender, withPipeline } from './warm.ts'

const STEP = 1.1
const SHORTFALL = 0.1
const STEP_S = 2
/** Of what the contender's cores could hash if they did nothing else. */
const START_AT = 0.5
/** Steps that fall short before it stops: one alone may be noise. */
const SHORT_STEPS = 2
const MOST_STEPS = 30
/** Where the pipeline alone is first tried, in logins per second for all cores. */
const PIPELINE_START = 500

const paths = { login: '/v1/login', registration: '/v1/users' }

export const ramp: Scenario = {
  name: 'ramp',
  title: 'Ten per cent more, step by step',
  question: 'How many logins and registrations a second can be offered before the server falls ten per cent behind?',
  settings: (setting) => ({
    stepPercent: Math.round((STEP - 1) * 100),
    secondsAStep: setting.durationS ?? STEP_S,
    argon2id: costOf.argon2id,
  }),
  plan: (setting) => {
    const contenders = picked(setting, shortSet)
    return [...contenders.flatMap((contender) => realHash(contender, setting)), ...pipeline(setting)]
  },
}

/** The two that the question is about. */
const shortSet = ['in-process', 'spillway']

function realHash(contender: Setting['contenders'][number], setting: Setting): Measurement[] {
  const tasks =
    setting.short && contender.name !== 'spillway' ? (['login'] as const) : (['login', 'registration'] as const)
  return tasks.map((task) => ({
    contender: contender.name,
    variant: task,
    placement: 'apart',
    estimatedS: 8 * stepS(setting) + AROUND_S,
    measure: () =>
      withContender(contender, setting, 'argon2id', (running) => {
        const bestPerSecond = (coreCount(setting.cores) * 1_000) / setting.bareHashMs.argon2id
        return climb(running, paths[task], setting.rate ?? bestPerSecond * START_AT, stepS(setting), (n) =>
          task === 'login' ? setting.accounts.login('argon2id', n) : setting.accounts.registration(),
        )
      }),
  }))
}

function pipeline(setting: Setting): Measurement[] {
  if (!hasSpillway(setting)) return []
  const login = (n: number) => setting.accounts.login('token', n)
  const measure = () =>
    withPipeline(setting, (running) =>
      climb(running, paths.login, setting.rate ?? PIPELINE_START, stepS(setting), login),
    )
  return [
    {
      contender: 'spillway',
      variant: 'token',
      placement: 'together',
      estimatedS: 12 * stepS(setting) + AROUND_S,
      measure,
    },
  ]
}

async function climb(
  running: Running,
  path: string,
  startAt: number,
  seconds: number,
  next: (n: number) => Credentials,
) {
  const client = createApiClient(running.url)
  const steps: Row[] = []
  const stop = new AbortController()
  let knee = 0
  let short = 0
  let rate = startAt
  let sent = 0
  let step = new Tally()
  const load = openLoop({
    rateAt: () => rate,
    durationMs: Number.POSITIVE_INFINITY,
    signal: stop.signal,
    send: async (dueMs) => {
      const outcome = outcomeOf(await client.post(path, next(sent++)))
      // Counted in the step in which the answer comes, whenever it was asked for.
      step.record(outcome, performance.now() - dueMs, 0)
    },
  })
  while (short < SHORT_STEPS && steps.length < MOST_STEPS) {
    const sentBefore = sent
    const startMs = performance.now()
    step = new Tally()
    await sleep(seconds * 1_000)
    const elapsedS = (performance.now() - startMs) / 1_000
    const offered = (sent - sentBefore) / elapsedS
    const served = step.counts.ok / elapsedS
    const { p50Ms, p99Ms } = step.latency.percentiles
    steps.push({ offered, served, p50Ms, p99Ms, ...step.counts })
    const keptUp = served >= offered * (1 - SHORTFALL)
    if (keptUp) knee = Math.max(knee, served)
    short = keptUp ? 0 : short + 1
    rate *= STEP
  }
  stop.abort()
  // What is still open only shows the backlog; nobody waits for it.
  client.close()
  await load
  return { figures: { kneePerSecond: knee }, series: { steps } }
}

function stepS(setting: Setting): number {
  return setting.durationS ?? STEP_S
}
