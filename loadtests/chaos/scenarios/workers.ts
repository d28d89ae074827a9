// Workers die, freeze and starve in the middle of a storm: no login fails, and what they held is answered soon after.
import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Member } from '@spillway/local/testing'
import { expect } from '../findings.ts'
import type { Scenario } from '../scenario.ts'
import type { RedisServer } from '../stage/redis.ts'
import { openSystem, type System } from '../stage/system.ts'
import { underFault } from '../under-fault.ts'

/** Slow enough that a worker always holds some jobs, and so few that one worker can do them all. */
const CREDENTIAL = 'wait-300'
const PER_SECOND = 40
/** After a kill, what the dead worker held is answered this much later than it would have been, at the most. */
const EXTRA_LIMIT_MS = 3_000

interface WorkerFault {
  name: string
  promise: string
  estimatedS: number
  befall(system: System): Promise<void>
}

const faults: readonly WorkerFault[] = [
  {
    name: 'worker-killed',
    promise: 'Workers are killed (SIGKILL) in a storm: no login fails, and what they held is answered within 3 s more.',
    estimatedS: 24,
    async befall(system) {
      for (let time = 0; time < 3; time++) {
        system.workers.at(-1)?.signal('SIGKILL')
        await sleep(3_000)
        await system.worker()
      }
    },
  },
  {
    name: 'worker-stopped',
    promise: 'A worker is stopped (SIGSTOP) for 5 s and goes on: no login fails, and none takes 3 s more.',
    estimatedS: 17,
    async befall(system) {
      system.workers[0]?.signal('SIGSTOP')
      await sleep(5_000)
      system.workers[0]?.signal('SIGCONT')
    },
  },
  {
    name: 'worker-starved',
    promise: 'A worker gets next to no processor time for 5 s: no login fails, and none takes 3 s more.',
    estimatedS: 17,
    async befall(system) {
      const [worker] = system.workers
      if (worker === undefined) return
      const greedy = starve(worker)
      await sleep(5_000)
      greedy.end()
    },
  },
]

export const workerScenarios = faults.map(
  ({ name, promise, estimatedS, befall }): Scenario => ({
    name,
    promise,
    estimatedS,
    async run(stage) {
      const redis = await stage.redis()
      const system = openSystem(stage, { redisUrl: redis.url, workerEnv: { WORKER_CONCURRENCY: '16' } })
      try {
        await Promise.all([system.worker(), system.worker(), system.gateway()])
        await system.knowsWorkers(2)
        await stage.accounts.seed(CREDENTIAL)
        const findings = await underFault({
          system,
          visitor: { urls: system.gateways.map(({ url }) => url), accounts: stage.accounts, credential: CREDENTIAL },
          perSecond: PER_SECOND,
          fault: () => befall(system),
          afterMs: 4_000,
          answerLimitMs: 9_000,
        })
        const taken = await takenOver(redis, system)
        findings.notes.push(`${taken} jobs taken over by another worker`)
        if (name !== 'worker-starved') expect(findings, taken > 0, 'no job was in hand, so nothing was tried')
        expect(findings, findings.succeeded === findings.requests, 'a login was refused or failed')
        expect(
          findings,
          (findings.worstExtraMs ?? 0) <= EXTRA_LIMIT_MS,
          `an answer took over ${EXTRA_LIMIT_MS} ms more`,
        )
        return findings
      } finally {
        await system.close()
        await redis.close()
      }
    },
  }),
)

/** Puts a worker last on one processor, behind programs that want all of it. */
function starve({ pid }: Member): { end(): void } {
  const run = (...command: string[]) => spawn(command[0] ?? '', command.slice(1), { stdio: 'ignore' })
  run('taskset', '-a', '-c', '-p', '0', String(pid))
  run('renice', '-n', '19', '-p', String(pid))
  const hogs = [1, 2].map(() => run('taskset', '-c', '0', process.execPath, '-e', 'for (;;);'))
  return {
    end() {
      for (const hog of hogs) hog.kill('SIGKILL')
    },
  }
}

/** How many jobs were taken from a worker that no longer renewed its lock, by the queue's own account. */
async function takenOver(redis: RedisServer, { queuePrefix }: System): Promise<number> {
  const events = await redis.command('XRANGE', `${queuePrefix}:passwords:events`, '-', '+')
  return Array.isArray(events) ? events.filter((event) => String(event).includes('event,stalled')).length : 0
}
