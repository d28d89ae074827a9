// What one login costs: held, with a ticket, what a gateway and a worker do when nobody comes, and
// the floors under it.
import { setTimeout as sleep } from 'node:timers/promises'
import { respondAsync } from '@spillway/infra/harness/api-client'
import type { Measured } from '@spillway/loadtests/results'
import { type Running, startProgram } from '../contenders/contender.ts'
import { type Caller, closedLoad, followsTickets } from '../load/closed.ts'
import { countsAllocations, Use } from '../measure/processes.ts'
import { ofContenders, type Scenario, type Setting } from './scenario.ts'

const USERS = 100
const DURATION_S = 8
/** V8 compiles during the first thousands of logins: then a gateway takes half as much again. */
const SETTLING_S = 20
/** About the logins of one core. Many more requests would share system calls, and cost less each. */
const FLOOR_PER_SECOND = 150

/** What a login cannot do without, alone: see contenders/rivals/floor.ts. */
const floors = {
  answer: 'bare Fastify, the same body and answer',
  job: 'with one bare BullMQ job',
  statements: 'with the two statements',
}

export const cost: Scenario = {
  name: 'cost',
  title: 'What one login costs',
  question: 'What do a login, a login with a ticket, and a second without any take of each process?',
  plan(setting) {
    const credentials = (number: number) => setting.accounts.login('argon2id', number)
    const held = followsTickets(credentials)
    const ticketed = followsTickets(credentials, respondAsync.headers)
    const ofSpillway = Object.entries<(running: Running) => Promise<Measured>>({
      'a login that is held': (running) => underLoad(running, setting, held),
      'a login with a ticket': (running) => underLoad(running, setting, ticketed),
      'a second without logins': (running) => atRest(running, setting),
    })
    const options = { few: ['spillway'], env: countsAllocations }
    return [
      ...ofSpillway.flatMap(([variant, measure]) =>
        ofContenders(setting, options, measure).map((each) => ({ ...each, variant })),
      ),
      ...Object.entries(floors).map(([floor, variant]) => ({
        contender: 'Floor',
        variant,
        measure: () => floorOf(floor, setting, held),
      })),
    ]
  },
}

async function atRest(running: Running, setting: Setting): Promise<Measured> {
  const { durationS = DURATION_S } = setting
  const use = new Use(running, setting)
  await use.begin()
  await sleep(durationS * 1_000)
  await use.end()
  return { figures: use.per(durationS) }
}

async function floorOf(floor: string, setting: Setting, caller: Caller): Promise<Measured> {
  const { databaseUrl, redisUrl } = setting
  const env = { FLOOR: floor, DATABASE_URL: databaseUrl, REDIS_URL: redisUrl, ...countsAllocations }
  const running = await startProgram('contenders/rivals/floor', env)
  try {
    return await underLoad(running, setting, caller, FLOOR_PER_SECOND)
  } finally {
    await running.close()
  }
}

/** What an answer takes. */
async function underLoad(running: Running, setting: Setting, caller: Caller, perSecond?: number): Promise<Measured> {
  const { durationS = DURATION_S, users = USERS } = setting
  const use = new Use(running, setting)
  const { tally, seconds } = await closedLoad({
    url: running.url,
    callers: users,
    caller,
    settlingS: SETTLING_S,
    countedS: durationS,
    perSecond,
    onCounting: () => use.begin(),
    onCounted: () => use.end(),
  })
  return { figures: { ...use.per(tally.counts.ok), perSecond: tally.counts.ok / seconds } }
}
