// Workers die, freeze, starve and are gone: no login fails, and their jobs are answered soon after.
import { constants, setPriority } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { startProcess } from '@spillway/infra/processes/node-process'
import { moveTo } from '@spillway/infra/processes/processor-time'
import { until } from '@spillway/infra/processes/until'
import { ask, readMetric } from '@spillway/infra/rig/api-client'
import type { Member } from '@spillway/infra/start/member'
import { Probe } from '../../measure/probe.ts'
import type { Findings } from '../findings.ts'
import { type Scenario, underFault } from '../scenario.ts'
import {
  drained,
  type OwnSystem,
  onOwnRedis,
  onSharedRedis,
  type RedisServer,
  type Stage,
  type System,
} from '../stage/stage.ts'

/** Slow hashes: a worker always holds some jobs. Few: one worker can do them all. */
const size = { credential: 'wait-300', gateways: 1, workerEnv: { WORKER_CONCURRENCY: '16' } } as const

const runOnWorkers = onSharedRedis((stage) => stage.redis(), size)

function workerScenario(name: string, promise: string, inject: (system: System) => Promise<void>): Scenario {
  const run = runOnWorkers(async (system, redis) => {
    const beganAt = Date.now()
    const findings = await underFault(system, { perSecond: 40, fault: () => inject(system), afterMs: 4_000 })
    const taken = await takenOver(system, redis, beganAt)
    findings.notes.push(`${taken} jobs taken over by another worker`)
    if (name !== 'worker-starved') findings.expect(taken > 0, 'no job was in hand, so nothing was tried')
    findings.expectAllSucceeded()
    return findings
  })
  return { name, promise, family: 'worker', run }
}

export const workerScenarios: readonly Scenario[] = [
  workerScenario(
    'worker-killed',
    'Workers are killed (SIGKILL) in a storm: no login fails, and what they held is answered.',
    async (system) => {
      for (let time = 0; time < 3; time++) {
        system.workers.at(-1)?.signal('SIGKILL')
        await sleep(3_000)
        await system.worker()
      }
    },
  ),
  workerScenario(
    'worker-stopped',
    'A worker is stopped (SIGSTOP) for 5 s and goes on: no login fails.',
    async ({ workers: [worker] }) => {
      worker?.signal('SIGSTOP')
      await sleep(5_000)
      worker?.signal('SIGCONT')
    },
  ),
  workerScenario(
    'worker-starved',
    'A worker gets next to no processor time for 5 s: no login fails.',
    async ({ workers: [worker] }) => {
      const hogs = worker ? starve(worker) : []
      await sleep(5_000)
      for (const hog of hogs) await hog.close()
    },
  ),
]

/** Puts a worker last on one processor, behind the returned programs, which want all of it. */
function starve({ pid }: Member) {
  moveTo(pid, [0])
  setPriority(pid, constants.priority.PRIORITY_LOW)
  return [1, 2].map(() => startProcess({ entry: '-e', args: ['for (;;);'], cores: [0] }))
}

/** Jobs taken over since then from a worker without a lock, by the queue's events. */
async function takenOver({ queuePrefix }: System, redis: RedisServer, sinceMs: number): Promise<number> {
  const events = await redis.command('XRANGE', `${queuePrefix}:passwords:events`, sinceMs, '+')
  return Array.isArray(events) ? events.filter((event) => String(event).includes('event,stalled')).length : 0
}

// All workers are gone: every client is answered, and all is done when workers are back.

const CREDENTIAL = 'wait-100'
const PER_SECOND = 30
const AWAY_MS = 3_000

/** Kills every worker, and waits until the last gateway knows. */
async function killWorkers(system: System, findings: Findings): Promise<void> {
  const killedAtMs = performance.now()
  for (const worker of system.workers) worker.signal('SIGKILL')
  await system.knowsWorkers(0)
  const noticedMs = Math.round(performance.now() - killedAtMs)
  findings.notes.push(`noticed after ${noticedMs} ms`)
}

/** Logs in without any worker, and gives the tickets. */
async function ticketsAlone(system: System, findings: Findings) {
  const logIn = (_: unknown, n: number) => system.ask(n, '/v1/login', { body: system.login(n) })
  const answers = await Promise.all(Array.from({ length: 20 }, logIn))
  const slowestMs = Math.round(Math.max(...answers.map(({ tookMs }) => tookMs)))
  findings.notes.push(`answered in ${slowestMs} ms without workers`)
  const honest = answers.every(({ status, body }) => status === 202 || (status === 503 && body.code === 'busy'))
  findings.expect(honest, `answers without workers were ${answers.map(({ status }) => status).join(', ')}`)
  const told = answers.every(({ headers }) => 'retry-after' in headers)
  findings.expect(told, 'an answer without workers has no Retry-After')
  return answers.filter(({ status }) => status === 202).map(({ body }) => body.ticket)
}

const withoutFallback: Scenario = {
  name: 'no-worker',
  promise: 'All workers are killed: noticed, then a ticket or 503; everything is done when they are back.',
  run: onOwnRedis({ credential: CREDENTIAL }, async (system) => {
    let tickets: unknown[] = []
    const findings = await underFault(system, {
      perSecond: PER_SECOND,
      async fault(findings) {
        await killWorkers(system, findings)
        tickets = await ticketsAlone(system, findings)
        await sleep(AWAY_MS)
        await Promise.all([system.worker(), system.worker()])
      },
    })
    await drained(system)
    const redeem = (ticket: unknown) => system.ask(0, '/v1/tickets/redeem', { body: { ticket } })
    const redeemed = await Promise.all(tickets.map(redeem))
    findings.expect(
      redeemed.every(({ status }) => status === 200),
      'a ticket came to nothing',
    )
    return findings
  }),
}

const FALLBACK_SLOTS = 2
/** Real hashes beside the doubles, each of some tenths of a second of processor time. */
const COSTLY = { ARGON2_TIME: '12' }

const sizeWithFallback = {
  credential: CREDENTIAL,
  gateways: 1,
  workers: 1,
  gatewayEnv: { ...COSTLY, LOCAL_FALLBACK_CONCURRENCY: String(FALLBACK_SLOTS), MAX_OUTSTANDING: '40' },
  workerEnv: { ...COSTLY, WORKER_CONCURRENCY: '8' },
} as const

/**
 * A fallback starts half a second after the workers are missed, and measures before its first job.
 */
const STARTS_WITHIN_MS = 30_000

/** Resolves when the fallback has hashed a login. Notes how long that took. */
async function untilFallbackHashes(system: OwnSystem, killedAtMs: number, findings: Findings): Promise<void> {
  const { opsUrl = '' } = system.gateways[0] ?? {}
  const slots = () => readMetric(opsUrl, 'spillway_slots')
  const answered = () => readMetric(opsUrl, 'spillway_wait_seconds_count', 'outcome="answered"')
  const after = (what: string) => `${what} ${((performance.now() - killedAtMs) / 1_000).toFixed(2)} s after the kill`
  const before = await answered()
  await until(async () => (await slots()) === FALLBACK_SLOTS, { timeoutMs: STARTS_WITHIN_MS, what: 'a fallback' })
  findings.notes.push(after('the fallback took jobs'))
  await until(async () => (await answered()) > before, { timeoutMs: STARTS_WITHIN_MS, what: 'a hash of the fallback' })
  findings.notes.push(after('the first login was answered'))
}

/** Watches a gateway that hashes itself, while more comes than it can do. */
async function watchFallback(system: OwnSystem, { accounts }: Stage, findings: Findings): Promise<void> {
  const { url = '', opsUrl = '' } = system.gateways[0] ?? {}
  const read = async () => ({
    answered: await readMetric(opsUrl, 'spillway_wait_seconds_count', 'outcome="answered"'),
    refused: await readMetric(opsUrl, 'spillway_refused_total', 'reason="too_many_waiting"'),
  })
  let [mostActive, mostSlots] = [0, 0]
  const before = await read()
  const probe = (perSecond: number, ask: () => Promise<unknown>) => new Probe({ perSecond, ask }).start()
  const registrations = probe(5, () => ask(url, '/v1/users', { body: accounts.registration() }))
  const healthz = probe(50, async () => (await ask(url, '/healthz')).status === 200)
  const activeJobs = probe(20, async () => {
    const active = await system.redis.command('LLEN', `${system.queuePrefix}:passwords:active`)
    mostActive = Math.max(mostActive, Number(active))
    mostSlots = Math.max(mostSlots, await readMetric(opsUrl, 'spillway_slots'))
  })
  await sleep(AWAY_MS)
  void registrations.stop()
  await Promise.all([healthz.stop(), activeJobs.stop()])
  const after = await read()
  const [answered, refused] = [after.answered - before.answered, after.refused - before.refused]
  findings.notes.push(
    `meanwhile ${answered} answered, ${refused} refused, at most ${mostActive} in hand, /healthz ${healthz.p99()} at p99`,
  )
  findings.expect(answered > 0, 'nothing was hashed here meanwhile')
  findings.expect(refused > 0, 'nothing was refused meanwhile, though more came than could be done')
  // A slot may have a batch in hand, and another that waits for it.
  findings.expect(mostSlots === FALLBACK_SLOTS, `${mostSlots} slots hashed at a time`)
  findings.expect(healthz.failed === 0, `/healthz failed ${healthz.failed} times`)
}

const withFallback: Scenario = {
  name: 'no-worker-fallback',
  promise: 'With LOCAL_FALLBACK_CONCURRENCY=2 the gateway hashes in two threads meanwhile, and /healthz is answered.',
  run: onOwnRedis(sizeWithFallback, async (system, stage) => {
    const findings = await underFault(system, {
      perSecond: PER_SECOND,
      async fault(findings) {
        const killedAtMs = performance.now()
        await killWorkers(system, findings)
        await untilFallbackHashes(system, killedAtMs, findings)
        await watchFallback(system, stage, findings)
        await system.worker()
      },
    })
    await drained(system)
    return findings
  }),
}

export const noWorkerScenarios: readonly Scenario[] = [withoutFallback, withFallback]
