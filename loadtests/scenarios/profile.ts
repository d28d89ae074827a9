// The time of a login by stage, and its processor time. Others learned that their bottleneck had moved unnoticed.
import { createApiClient, readMetric } from '@spillway/infra/rig/api-client'
import { openLoop } from '@spillway/infra/rig/open-loop'
import { coreCount } from '../contenders/contender.ts'
import type { SpillwayRunning } from '../contenders/spillway.ts'
import type { Credential } from '../load/accounts.ts'
import { processorTimeOf, timeOf } from '../measure/observe.ts'
import { outcomeOf, Tally } from '../measure/tally.ts'
import type { Measured, Row } from '../src/results.ts'
import { latencyFigures, ofSpillway } from './measurements.ts'
import type { Measurement, Scenario, Setting } from './scenario.ts'

/** Of the hashes that the cores could compute: busy, but waits are short. */
const LOAD = 0.5
/** Without a hash, so many a second that the processors have something to show. */
const TOKEN_PER_SECOND = 200

export const profile: Scenario = {
  name: 'profile',
  title: 'Where the time of a login goes',
  question: 'What does a login wait for, and what does the processor do for it?',
  durationS: 5,
  settings: (setting) => ({ perSecond: Math.round(halfCapacity(setting)), tokenPerSecond: TOKEN_PER_SECOND }),
  plan: (setting) => [
    ...measurement(setting, 'argon2id', setting.rate ?? halfCapacity(setting)),
    ...(setting.short ? [] : measurement(setting, 'token', setting.rate ?? TOKEN_PER_SECOND)),
  ],
}

function halfCapacity(setting: Setting): number {
  return (LOAD * coreCount(setting.cores) * 1_000) / setting.bareHashMs.argon2id
}

function measurement(setting: Setting, credential: Credential, perSecond: number): Measurement[] {
  const { cores } = setting
  const size = { cores, gateways: 1, workers: 1, concurrency: coreCount(cores) }
  return ofSpillway(setting, { size, credential, variant: credential, placement: 'apart' }, (running) =>
    look(running, setting, credential, perSecond),
  )
}

async function look(
  running: SpillwayRunning,
  { servers, accounts, durationS }: Setting,
  credential: Credential,
  perSecond: number,
): Promise<Measured> {
  const watched = await watchStages(running)
  const tally = new Tally()
  const client = createApiClient(running.url)
  let caller = 0
  const { parts } = await processorTimeOf(running, servers, () =>
    openLoop({
      rateAt: () => perSecond,
      durationMs: durationS * 1_000,
      send: async (dueMs) => {
        const outcome = outcomeOf(await client.login(accounts.login(credential, caller++)))
        tally.record(outcome, performance.now() - dueMs, 0)
      },
    }),
  )
  client.close()
  const stages = await watched()
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
      ...(parts.length > 0 && { processorMsPerAnswer: timeOf(parts) / logins }),
    },
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
    },
  }
}

/**
 * Reads the counters of one gateway and one worker; the returned function gives the averages since then, in milliseconds of a login: from
 * the head of the request to the end of the answer, from handing the job over to having its verdict, and in the last two stages alone.
 */
async function watchStages({ gatewayOps, workerOps }: SpillwayRunning) {
  const [gateway = ''] = gatewayOps
  const [worker = ''] = workerOps
  const stages = [
    [gateway, 'spillway_http_request_duration_seconds', 'route="/v1/login"'],
    [gateway, 'spillway_wait_seconds', 'operation="login"'],
    [worker, 'spillway_queue_wait_seconds', 'job="verify"'],
    [worker, 'spillway_service_seconds', 'job="verify"'],
  ] as const
  const read = () =>
    Promise.all(
      stages.map(async ([opsUrl, name, label]) => ({
        sum: await readMetric(opsUrl, `${name}_sum`, label),
        count: await readMetric(opsUrl, `${name}_count`, label),
      })),
    )
  const before = await read()
  return async () => {
    const [requestMs = 0, heldMs = 0, queueWaitMs = 0, hashMs = 0] = (await read()).map((now, stage) => {
      const count = now.count - (before[stage]?.count ?? 0)
      return count === 0 ? 0 : (1_000 * (now.sum - (before[stage]?.sum ?? 0))) / count
    })
    return { requestMs, heldMs, queueWaitMs, hashMs }
  }
}
