// A long run at most of capacity, with a worker killed each minute: no login fails, no memory grows, no key stays.
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@spillway/local/processes/until'
import { readPlainGauge } from '@spillway/local/services/prometheus'
import { countVisits, expect, type Findings } from '../findings.ts'
import type { Scenario } from '../scenario.ts'
import { drained, leftovers } from '../stage/queue.ts'
import type { RedisServer } from '../stage/redis.ts'
import { openSystem } from '../stage/system.ts'
import { startTraffic } from '../traffic/traffic.ts'
import { createVisitor } from '../traffic/visit.ts'

const CREDENTIAL = 'wait-200'
const SERVICE_MS = 200
const SLOTS = 10
const WORKERS = 2
const LOAD_SHARE = 0.8
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
    estimatedS: minutes * 60 + 25,
    async run(stage) {
      const redis = await stage.redis()
      const system = openSystem(stage, {
        redisUrl: redis.url,
        gatewayEnv: { TICKET_TTL_MS: String(TICKET_TTL_MS) },
        workerEnv: { WORKER_CONCURRENCY: String(SLOTS) },
      })
      try {
        const [staying, gateway] = await Promise.all([system.worker(), system.gateway(), system.worker()])
        await system.knowsWorkers(WORKERS)
        await stage.accounts.seed(CREDENTIAL)
        const visitor = createVisitor({ urls: [gateway.url], accounts: stage.accounts, credential: CREDENTIAL })
        const traffic = startTraffic(visitor, (LOAD_SHARE * WORKERS * SLOTS * 1_000) / SERVICE_MS)
        const samples: Sample[] = []
        const startMs = performance.now()
        let kills = 0
        while (performance.now() - startMs < minutes * 60_000) {
          await sleep(SAMPLE_EVERY_MS)
          samples.push({
            gateway: await residentBytes(gateway),
            worker: await residentBytes(staying),
            redis: await usedBytes(redis),
          })
          if (performance.now() - startMs < (kills + 1) * KILL_EVERY_MS) continue
          kills++
          system.workers.findLast((worker) => worker !== staying && worker.exit === undefined)?.signal('SIGKILL')
          await system.worker()
        }
        const visits = await traffic.stop()
        visitor.close()
        await drained(redis, system.queuePrefix)

        const findings = countVisits(visits)
        const took = visits.map(({ tookMs }) => tookMs).toSorted((a, b) => a - b)
        findings.worstExtraMs = (took.at(-1) ?? 0) - (took[Math.floor(took.length / 2)] ?? 0)
        findings.notes.push(`${minutes} minutes, ${kills} workers killed`)
        expect(findings, findings.succeeded === findings.requests, 'a login was refused or failed')
        compare(findings, samples)
        const left = await until(
          async () => ((await leftovers(redis, system.queuePrefix)).length === 0 ? 'none' : undefined),
          {
            timeoutMs: TICKET_TTL_MS + 5_000,
          },
        ).catch(async () => (await leftovers(redis, system.queuePrefix)).slice(0, 5).join(', '))
        expect(findings, left === 'none', `keys stay in Redis: ${left}`)
        findings.broken.push(...system.complaints())
        return findings
      } finally {
        await system.close()
        await redis.close()
      }
    },
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
    expect(findings, after <= limit, `the memory of ${part} grew from ${mebibytes(before)} to ${mebibytes(after)}`)
  }
}

function residentBytes({ opsUrl }: { opsUrl: string }): Promise<number> {
  return readPlainGauge(opsUrl, 'process_resident_memory_bytes')
}

async function usedBytes(redis: RedisServer): Promise<number> {
  const info = String(await redis.command('INFO', 'memory'))
  return Number(/used_memory:(\d+)/.exec(info)?.[1])
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1_024 ** 2).toFixed(1)} MiB`
}
