// The time of a login by stage, and its processor time. Others learned that their bottleneck had moved unnoticed.

import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApiClient } from '@spillway/local/testing/api-client'
import { openLoop } from '@spillway/local/testing/open-loop'
import { coreCount } from '../contenders/contender.ts'
import type { SpillwayRunning } from '../contenders/spillway.ts'
import type { Credential } from '../load/accounts.ts'
import { profileClockUs, readProfile, type StageRules, timeByStage } from '../measure/cpu-profile.ts'
import { type StageTimes, watchStages } from '../measure/login-stages.ts'
import { type PartTime, processorTimeOf } from '../measure/observe.ts'
import { outcomeOf, Tally } from '../measure/tally.ts'
import type { Measured, Row } from '../src/results.ts'
import { latencyFigures } from './figures.ts'
import { ofSpillway } from './measurements.ts'
import type { Measurement, Scenario, Setting } from './scenario.ts'

const DURATION_S = 5
/** Of the hashes that the cores could compute: busy, but waits are short. */
const LOAD = 0.5
/** Without a hash, so many a second that the event loops have something to show. */
const TOKEN_PER_SECOND = 200

/** Code by the stage of a login that it belongs to: the first that fits, from the running function outwards. */
const rules: StageRules = {
  signing: /fast-jwt|@fastify\/jwt/,
  sealing: /client\/dist\/protocol\/seal/,
  database: /@prisma|node_modules\/pg[-/]|prisma\/dist/,
  'queue and notification':
    /bullmq|ioredis|redis-parser|worker\/(client\/)?dist\/(consumer|passwords|protocol|queue|redis)/,
  logging: /pino|sonic-boom|request-log/,
  metrics: /prom-client|metrics/,
  validation: /ajv|fast-uri/,
  HTTP: /fastify|find-my-way|node:_http|node:net|light-my-request|avvio/,
}

export const profile: Scenario = {
  name: 'profile',
  title: 'Where the time of a login goes',
  question: 'What does a login wait for, and what does the processor do for it?',
  settings: (setting) => ({
    seconds: setting.durationS ?? DURATION_S,
    perSecond: Math.round(halfCapacity(setting)),
    tokenPerSecond: TOKEN_PER_SECOND,
  }),
  plan: (setting) => [
    ...measurement(setting, 'argon2id', setting.rate ?? halfCapacity(setting)),
    ...(setting.short ? [] : measurement(setting, 'token', setting.rate ?? TOKEN_PER_SECOND)),
  ],
}

function halfCapacity(setting: Setting): number {
  return (LOAD * coreCount(setting.cores) * 1_000) / setting.bareHashMs.argon2id
}

function measurement(setting: Setting, credential: Credential, perSecond: number): Measurement[] {
  const { cores, durationS = DURATION_S } = setting
  const dir = join(tmpdir(), `spillway-profile-${randomUUID()}`)
  const nodeArgs = ['--cpu-prof', `--cpu-prof-dir=${dir}`]
  const size = { cores, gateways: 1, workers: 1, concurrency: coreCount(cores), nodeArgs }
  return ofSpillway(
    setting,
    { size, credential, variant: credential, placement: 'apart', estimatedS: durationS },
    async (running) => {
      try {
        const looked = await look(running, setting, credential, perSecond, durationS)
        // The processes write their profiles when they end.
        await running.close()
        const eventLoops = running.parts.flatMap(({ role, pid }) => {
          const written = readProfile(dir, pid)
          const stages = written === undefined ? {} : timeByStage(written, rules, looked.fromUs, looked.toUs)
          return Object.entries(stages).map(([stage, ms]) => ({ process: role, stage, ms }))
        })
        return report(looked, eventLoops)
      } finally {
        rmSync(dir, { recursive: true, force: true })
      }
    },
  )
}

interface Look {
  tally: Tally
  parts: PartTime[]
  /** Of a login, on average. */
  stages: StageTimes
  fromUs: number
  toUs: number
}

async function look(
  running: SpillwayRunning,
  setting: Setting,
  credential: Credential,
  perSecond: number,
  durationS: number,
): Promise<Look> {
  const stages = await watchStages(running)
  const tally = new Tally()
  const client = createApiClient(running.url)
  const fromUs = profileClockUs()
  let caller = 0
  const { parts } = await processorTimeOf(running, setting.servers, () =>
    openLoop({
      rateAt: () => perSecond,
      durationMs: durationS * 1_000,
      send: async (dueMs) => {
        const outcome = outcomeOf(await client.login(setting.accounts.login(credential, caller++)))
        tally.record(outcome, performance.now() - dueMs, 0)
      },
    }),
  )
  const toUs = profileClockUs()
  client.close()
  return { tally, parts, stages: await stages(), fromUs, toUs }
}

function report(
  { tally, parts, stages }: Look,
  eventLoops: { process: string; stage: string; ms: number }[],
): Measured {
  const logins = Math.max(tally.counts.ok, 1)
  const processor: Row[] = parts.flatMap(({ role, totalMs, eventLoopMs }) =>
    role === 'worker'
      ? [
          { stage: 'worker: hash', ms: (totalMs - eventLoopMs) / logins },
          { stage: 'worker: event loop', ms: eventLoopMs / logins },
        ]
      : [{ stage: role === 'api' ? 'gateway' : role, ms: totalMs / logins }],
  )
  return {
    figures: {
      ...latencyFigures(tally.latency),
      failedPercent: tally.share('timeout', 'error'),
      ...(parts.length > 0 && { processorMsPerAnswer: parts.reduce((sum, { totalMs }) => sum + totalMs, 0) / logins }),
    },
    histograms: { answer: tally.latency.encode() },
    series: {
      // Each is what is left of the one around it.
      time: [
        { stage: 'generator and network', ms: tally.latency.meanMs - stages.requestMs },
        { stage: 'gateway: HTTP, validation, lookup, session, signing', ms: stages.requestMs - stages.heldMs },
        { stage: 'queue wait', ms: stages.queueWaitMs },
        { stage: 'hash', ms: stages.hashMs },
        { stage: 'sealing and notification', ms: stages.heldMs - stages.queueWaitMs - stages.hashMs },
      ].map(({ stage, ms }) => ({ stage, ms: Math.max(ms, 0) })),
      processor,
      eventLoops: eventLoops.map((row) => ({ ...row, ms: row.ms / logins })),
    },
  }
}
