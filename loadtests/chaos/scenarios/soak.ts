// A long run near capacity, with a worker killed each minute: nothing fails, grows or stays.
import { setTimeout as sleep } from 'node:timers/promises'
import { readMetric } from '@spillway/infra/rig/api-client'
import { startTraffic } from '../../load/visit.ts'
import { Findings, tookAt } from '../findings.ts'
import type { Scenario } from '../scenario.ts'
import { drained, expectNoLeftovers, type OwnSystem, onOwnRedis, waitingSlots } from '../stage/stage.ts'

const WORKERS = 2
const worker = waitingSlots(10, 200)
const PER_SECOND = 0.8 * WORKERS * worker.perSecond
const TICKET_TTL_MS = 15_000
const KILL_EVERY_MS = 60_000
const SAMPLE_EVERY_MS = 2_000
/** Of the run: caches, kept jobs and events fill up in it. */
const WARM_UP_SHARE = 0.3
/** Of the run, at its end: what is compared with as much right after the warm-up. */
const COMPARED_SHARE = 0.2
/** Growth that is no leak: a tenth, and what a collection more or less makes. */
const GROWTH_SHARE = 0.1
const GROWTH_BYTES = 8 * 1_024 ** 2

const size = {
  ...worker.size,
  gateways: 1,
  workers: WORKERS,
  gatewayEnv: { TICKET_TTL_MS: String(TICKET_TTL_MS) },
} as const

interface Sample {
  gateway: number
  worker: number
  redis: number
}

/** @param minutes how long logins come */
export function soak(minutes: number): Scenario {
  return {
    name: 'soak',
    promise: `${minutes} minutes at 80 % of capacity with a worker killed each minute: no login fails, nothing grows.`,
    run: onOwnRedis(size, async (system) => {
      const [gateway] = system.gateways
      const [staying] = system.workers
      const traffic = startTraffic(system.visitor(), PER_SECOND)
      const samples: Sample[] = []
      const startMs = performance.now()
      let kills = 0
      while (performance.now() - startMs < minutes * 60_000) {
        await sleep(SAMPLE_EVERY_MS)
        samples.push({
          gateway: await residentBytes(gateway),
          worker: await residentBytes(staying),
          redis: await usedBytes(system),
        })
        if (performance.now() - startMs < (kills + 1) * KILL_EVERY_MS) continue
        kills++
        system.workers.findLast((worker) => worker !== staying && worker.exit === undefined)?.signal('SIGKILL')
        await system.worker()
      }
      const visits = await traffic.stop()
      await drained(system)

      const findings = new Findings().count(visits)
      findings.worstExtraMs = tookAt(visits, 1) - tookAt(visits, 0.5)
      findings.notes.push(`${minutes} minutes, ${kills} workers killed`)
      findings.expectAllSucceeded()
      compare(findings, samples)
      await expectNoLeftovers(findings, system, TICKET_TTL_MS + 5_000)
      return findings
    }),
  }
}

function compare(findings: Findings, samples: readonly Sample[]): void {
  const first = Math.floor(samples.length * WARM_UP_SHARE)
  const compared = Math.max(1, Math.floor(samples.length * COMPARED_SHARE))
  for (const part of ['gateway', 'worker', 'redis'] as const) {
    const mean = (from: number) =>
      samples.slice(from, from + compared).reduce((sum, sample) => sum + sample[part], 0) / compared
    const [before, after] = [mean(first), mean(samples.length - compared)]
    findings.notes.push(`${part} ${mebibytes(before)} after the warm-up, ${mebibytes(after)} at the end`)
    const limit = before * (1 + GROWTH_SHARE) + GROWTH_BYTES
    findings.expect(after <= limit, `the memory of ${part} grew from ${mebibytes(before)} to ${mebibytes(after)}`)
  }
}

function residentBytes(member: { opsUrl: string } | undefined): Promise<number> {
  return readMetric(member?.opsUrl ?? '', 'process_resident_memory_bytes')
}

async function usedBytes({ redis }: OwnSystem): Promise<number> {
  const info = String(await redis.command('INFO', 'memory'))
  return Number(/used_memory:(\d+)/.exec(info)?.[1])
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1_024 ** 2).toFixed(1)} MiB`
}
