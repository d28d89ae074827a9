// Where a login's time goes, and where its processor time goes. The lesson of others: the bottleneck had moved, and nobody
// had looked.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApiClient } from '@spillway/local/testing/api-client'
import { coreCount } from '../contenders/contender.ts'
import type { SpillwayRunning } from '../contenders/spillway/start.ts'
import type { Credential } from '../load/accounts.ts'
import { openLoop } from '../load/open.ts'
import { profileClockUs, readProfile, type StageRules, timeByStage } from '../measure/cpu-profile.ts'
import { readStages, type StageTimes, stageTimes } from '../measure/login-stages.ts'
import { type PartTime, processorTimeOf } from '../measure/observe.ts'
import { outcomeOf, Tally } from '../measure/tally.ts'
import type { Measured, Row } from '../src/results.ts'
import { latencyFigures } from './figures.ts'
import { AROUND_S, hasSpillway, type Measurement, type Scenario, type Setting } from './scenario.ts'
import { withSpillway } from './warm.ts'

const DURATION_S = 5
/** Of what the cores could hash: busy, but nobody waits for long. */
const LOAD = 0.5
/** Without a hash, so many a second that the event loops have something to show. */
const TOKEN_PER_SECOND = 200

/** Whose code works for which stage of a login: the first that fits, from the running function outwards. */
const rules: StageRules = {
  signing: /fast-jwt|@fastify\/jwt/,
  sealing: /worker\/dist\/protocol\/seal/,
  database: /@prisma|node_modules\/pg[-/]|prisma\/dist/,
  'queue and notification': /bullmq|ioredis|redis-parser|worker\/dist\/(client|redis|clock|capacity|run)/,
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
  plan: (setting) =>
    hasSpillway(setting)
      ? [
          measurement(setting, 'argon2id', setting.rate ?? halfCapacity(setting)),
          ...(setting.short ? [] : [measurement(setting, 'token', setting.rate ?? TOKEN_PER_SECOND)]),
        ]
      : [],
}

function halfCapacity(setting: Setting): number {
  return (LOAD * coreCount(setting.cores) * 1_000) / setting.bareHashMs.argon2id
}

function measurement(setting: Setting, credential: Credential, perSecond: number): Measurement {
  const durationS = setting.durationS ?? DURATION_S
  return {
    contender: 'spillway',
    variant: credential,
    placement: 'apart',
    estimatedS: durationS + AROUND_S,
    measure: async () => {
      const dir = mkdtempSync(join(tmpdir(), 'spillway-profile-'))
      try {
        const { cores } = setting
        const nodeArgs = ['--cpu-prof', `--cpu-prof-dir=${dir}`]
        const size = { cores, gateways: 1, workers: 1, concurrency: coreCount(cores), nodeArgs }
        const { looked, processes } = await withSpillway(size, setting, credential, async (running) => ({
          looked: await look(running, setting, credential, perSecond, durationS),
          processes: running.parts,
        }))
        // The profiles were written when the processes ended.
        const eventLoops = processes.flatMap(({ role, pid }) => {
          const written = readProfile(dir, pid)
          const stages = written === undefined ? {} : timeByStage(written, rules, looked.fromUs, looked.toUs)
          return Object.entries(stages).map(([stage, ms]) => ({ process: role, stage, ms }))
        })
        return report(looked, eventLoops)
      } finally {
        rmSync(dir, { recursive: true, force: true })
      }
    },
  }
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
  const before = await readStages(running)
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
  return { tally, parts, stages: stageTimes(before, await readStages(running)), fromUs, toUs }
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
