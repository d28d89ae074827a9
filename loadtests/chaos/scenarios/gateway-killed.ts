// A gateway is killed: its clients go to the next one, and what it leaves behind goes away by itself.
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@spillway/local/processes/until'
import { readGauge } from '@spillway/local/services/prometheus'
import { ask } from '@spillway/local/testing/api-client'
import { expect } from '../findings.ts'
import type { Scenario } from '../scenario.ts'
import { drained, leftovers } from '../stage/queue.ts'
import { openSystem } from '../stage/system.ts'
import { underFault } from '../under-fault.ts'

const CREDENTIAL = 'wait-100'
const PER_SECOND = 40
const TICKET_TTL_MS = 5_000
const ORPHANS = 20

export const gatewayKilled: Scenario = {
  name: 'gateway-killed',
  promise:
    'A gateway is killed (SIGKILL): retries at another one succeed, its jobs expire unhashed, its state goes away.',
  estimatedS: 25,
  async run(stage) {
    const redis = await stage.redis()
    const env = { TICKET_TTL_MS: String(TICKET_TTL_MS), LOGIN_WAIT_MS: '2000' }
    const system = openSystem(stage, { redisUrl: redis.url, gatewayEnv: env })
    try {
      await Promise.all([system.worker(), system.worker(), system.gateway(), system.gateway()])
      await system.knowsWorkers(2)
      await stage.accounts.seed(CREDENTIAL)
      const urls = system.gateways.map(({ url }) => url)
      const findings = await underFault({
        system,
        visitor: { urls, accounts: stage.accounts, credential: CREDENTIAL, tries: 3 },
        perSecond: PER_SECOND,
        async fault() {
          system.gateways[1]?.signal('SIGKILL')
        },
        afterMs: 4_000,
        answerLimitMs: 5_000,
      })
      expect(findings, findings.succeeded === findings.requests, 'a retry was refused or failed')

      // Without workers its jobs stay where they are; then it dies, and nobody asks for them.
      for (const worker of system.workers) await worker.stop()
      const doomed = await system.gateway()
      const logins = Array.from({ length: ORPHANS }, (_, n) =>
        ask(doomed.url, '/v1/login', {
          body: stage.accounts.login(CREDENTIAL, n),
          headers: { prefer: 'respond-async' },
        }),
      )
      const given = await Promise.all(logins)
      expect(
        findings,
        given.every(({ status }) => status === 202),
        'not every orphan had a ticket',
      )
      doomed.signal('SIGKILL')
      await sleep(TICKET_TTL_MS)
      const worker = await system.worker()
      await drained(redis, system.queuePrefix)
      const jobs = (outcome: string) => readGauge(worker.opsUrl, 'spillway_jobs_total', [`outcome="${outcome}"`])
      const [expired, hashed] = [await jobs('expired'), await jobs('hashed')]
      findings.notes.push(`${expired} of ${ORPHANS} orphaned jobs dropped, ${hashed} hashed`)
      expect(findings, expired === ORPHANS && hashed === 0, 'jobs of the dead gateway did not expire')

      const left = await until(
        async () => ((await leftovers(redis, system.queuePrefix)).length === 0 ? 'none' : undefined),
        {
          timeoutMs: TICKET_TTL_MS,
        },
      ).catch(async () => (await leftovers(redis, system.queuePrefix)).join(', '))
      expect(findings, left === 'none', `keys stay in Redis: ${left}`)
      const channels = await redis.command('PUBSUB', 'CHANNELS', `${system.queuePrefix}:replies:*`)
      const open = Array.isArray(channels) ? channels.length : 0
      expect(findings, open === 1, `${open} gateways listen for replies, where one is left`)
      return findings
    } finally {
      await system.close()
      await redis.close()
    }
  },
}
