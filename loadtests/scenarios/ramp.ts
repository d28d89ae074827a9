// The registration post's method: ten per cent more requests every step, until the served rate
// falls ten per cent short. That is the knee.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Credentials, createApiClient } from '@spillway/infra/rig/api-client'
import { startLoop } from '@spillway/infra/rig/open-loop'
import { type Contender, coreCount, type Running } from '../contenders/contender.ts'
import { costOf } from '../contenders/hashing.ts'
import { outcomeOf, Tally } from '../measure/tally.ts'
import type { Row } from '../src/results.ts'
import { type Measurement, ofContenders, ofPipeline, picked, type Scenario, type Setting } from './scenario.ts'

const STEP = 1.1
const SHORTFALL = 0.1
/** Of the hashes that the contender's cores could compute if they did nothing else. */
const START_AT = 0.5
/** Steps that fall short before it stops: one alone may be noise. */
const SHORT_STEPS = 2
const MOST_STEPS = 30
/** The first rate for the pipeline alone, in logins per second for all cores. */
const PIPELINE_START = 500

export const ramp: Scenario = {
  name: 'ramp',
  title: 'Ten per cent more, step by step',
  question: 'How many logins and registrations a second can be offered before the server falls ten per cent behind?',
  durationS: 2,
  settings: () => ({ stepPercent: Math.round((STEP - 1) * 100), argon2id: costOf.argon2id }),
  plan: (setting) => {
    const { accounts, rate = PIPELINE_START, durationS } = setting
    const login = (n: number) => accounts.login('token', n)
    return [
      ...picked(setting).flatMap((contender) => realHash(contender, setting)),
      ...ofPipeline(setting, (running) => climb(running, '/v1/login', rate, durationS, login)),
    ]
  },
}

function realHash(contender: Contender, setting: Setting): Measurement[] {
  const { accounts, durationS } = setting
  const bestPerSecond = (coreCount(setting.cores) * 1_000) / setting.bareHashMs.argon2id
  const rate = setting.rate ?? bestPerSecond * START_AT
  const all = !setting.short || contender.name === 'spillway'
  const measured = (variant: string, path: string, next: (n: number) => Credentials) =>
    ofContenders(setting, { contenders: [contender], variant }, (running) =>
      climb(running, path, rate, durationS, next),
    )
  return [
    ...measured('login', '/v1/login', (n) => accounts.login('argon2id', n)),
    ...(all ? measured('registration', '/v1/users', () => accounts.registration()) : []),
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
  let knee = 0
  let short = 0
  let rate = startAt
  let sent = 0
  let step = new Tally()
  const load = startLoop({
    rateAt: () => rate,
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
    steps.push({ offered, served })
    const keptUp = served >= offered * (1 - SHORTFALL)
    if (keptUp) knee = Math.max(knee, served)
    short = keptUp ? 0 : short + 1
    rate *= STEP
  }
  const stopped = load.stop()
  // Open requests only show the backlog: they are cut off.
  client.close()
  await stopped
  return { figures: { kneePerSecond: knee }, series: { steps } }
}
