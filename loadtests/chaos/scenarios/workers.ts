// Workers die, freeze and starve in the middle of a storm: no login fails, and the jobs that they held are answered soon after.
import { constants, setPriority } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { moveTo } from '@spillway/local/processes/processor-time'
import { type Member, startProcess } from '@spillway/local/rig'
import type { Scenario } from '../scenario.ts'
import { type OwnSystem, onOwnRedis, type System } from '../stage/system.ts'
import { underFault } from '../under-fault.ts'

/** Hashes slow enough that a worker always holds some jobs, and so few that one worker can do them all. */
const size = { credential: 'wait-300', gateways: 1, workerEnv: { WORKER_CONCURRENCY: '16' } } as const

function workerScenario(name: string, promise: string, inject: (system: System) => Promise<void>): Scenario {
  const run = onOwnRedis(size, async (system) => {
    const findings = await underFault(system, { perSecond: 40, fault: () => inject(system), afterMs: 4_000 })
    const taken = await takenOver(system)
    findings.notes.push(`${taken} jobs taken over by another worker`)
    if (name !== 'worker-starved') findings.expect(taken > 0, 'no job was in hand, so nothing was tried')
    findings.expectAllSucceeded()
    return findings
  })
  // It takes a processor.
  return name === 'worker-starved' ? { name, promise, alone: true, run } : { name, promise, run }
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

/** Puts a worker last on one processor, behind the programs that it returns, which want all of it. */
function starve({ pid }: Member) {
  moveTo(pid, [0])
  setPriority(pid, constants.priority.PRIORITY_LOW)
  return [1, 2].map(() => startProcess({ entry: '-e', args: ['for (;;);'], cores: [0] }))
}

/** How many jobs were taken from a worker that no longer renewed its lock, by the queue's own account. */
async function takenOver({ redis, queuePrefix }: OwnSystem): Promise<number> {
  const events = await redis.command('XRANGE', `${queuePrefix}:passwords:events`, '-', '+')
  return Array.isArray(events) ? events.filter((event) => String(event).includes('event,stalled')).length : 0
}
