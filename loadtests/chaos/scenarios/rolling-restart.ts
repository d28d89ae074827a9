// Every gateway and every worker is replaced under load, one after the other, each by SIGTERM.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from '../findings.ts'
import type { Scenario } from '../scenario.ts'
import { startBalancer } from '../stage/balancer.ts'
import { openSystem } from '../stage/system.ts'
import { underFault } from '../under-fault.ts'

const PER_SECOND = 20
/** Longer than a balancer takes to hear that a gateway is no longer ready. */
const DRAIN_MS = 2_000
const PAUSE_MS = 500

export const rollingRestart: Scenario = {
  name: 'rolling-restart',
  promise: 'Every gateway and worker is replaced under load, by SIGTERM: not one request fails.',
  estimatedS: 25,
  async run(stage) {
    const redis = await stage.redis()
    const system = openSystem(stage, { redisUrl: redis.url, gatewayEnv: { DRAIN_MS: String(DRAIN_MS) } })
    const balancer = await startBalancer()
    try {
      await Promise.all([system.worker(), system.worker(), system.gateway(), system.gateway()])
      await system.knowsWorkers(2)
      const [gateways, workers] = [[...system.gateways], [...system.workers]]
      for (const { url } of gateways) await balancer.add(url)
      await stage.accounts.seed('wait-100')
      const findings = await underFault({
        system,
        visitor: { urls: [balancer.url], accounts: stage.accounts, credential: 'wait-100' },
        perSecond: PER_SECOND,
        async fault() {
          for (const worker of workers) {
            await worker.stop()
            await system.worker()
            await sleep(PAUSE_MS)
          }
          for (const gateway of gateways) {
            await gateway.stop()
            balancer.remove(gateway.url)
            await balancer.add((await system.gateway()).url)
            await sleep(PAUSE_MS)
          }
        },
        afterMs: 2_000,
        answerLimitMs: 9_000,
      })
      expect(findings, findings.succeeded === findings.requests, 'a request was refused or failed')
      const ends = [...gateways, ...workers].map(({ exit }) => exit?.code)
      expect(
        findings,
        ends.every((code) => code === 0),
        `exit codes were ${ends.join(', ')}`,
      )
      return findings
    } finally {
      await balancer.close()
      await system.close()
      await redis.close()
    }
  },
}
