// A gateway is killed: its clients go to the next one, and the state that it leaves behind expires.
import { setTimeout as sleep } from 'node:timers/promises'
import { ask, readMetric, respondAsync } from '@spillway/local/rig/api-client'
import type { Scenario } from '../scenario.ts'
import { drained, expectNoLeftovers, onOwnRedis } from '../stage/system.ts'
import { underFault } from '../under-fault.ts'

const TICKET_TTL_MS = 5_000
const ORPHANS = 20

const size = {
  credential: 'wait-100',
  gatewayEnv: { TICKET_TTL_MS: String(TICKET_TTL_MS), LOGIN_WAIT_MS: '2000' },
} as const

export const gatewayKilled: Scenario = {
  name: 'gateway-killed',
  promise:
    'A gateway is killed (SIGKILL): retries at another one succeed, its jobs expire unhashed, its state goes away.',
  run: onOwnRedis(size, async (system) => {
    const findings = await underFault(system, {
      visitor: { tries: 3 },
      perSecond: 40,
      fault: async () => system.gateways[1]?.signal('SIGKILL'),
      afterMs: 4_000,
    })
    findings.expectAllSucceeded()

    // Without workers the jobs of another gateway stay where they are; then it dies, and no client asks for them.
    for (const worker of system.workers) await worker.stop()
    const doomed = await system.gateway()
    const logins = Array.from({ length: ORPHANS }, (_, n) =>
      ask(doomed.url, '/v1/login', { body: system.login(n), ...respondAsync }),
    )
    const ticketed = (await Promise.all(logins)).filter(({ status }) => status === 202)
    findings.expect(ticketed.length === ORPHANS, 'not every orphan had a ticket')
    doomed.signal('SIGKILL')
    await sleep(TICKET_TTL_MS)
    const worker = await system.worker()
    await drained(system)
    const jobs = (outcome: string) => readMetric(worker.opsUrl, 'spillway_jobs_total', `outcome="${outcome}"`)
    const [expired, hashed] = [await jobs('expired'), await jobs('hashed')]
    findings.notes.push(`${expired} of ${ORPHANS} orphaned jobs dropped, ${hashed} hashed`)
    findings.expect(expired === ORPHANS && hashed === 0, 'jobs of the dead gateway did not expire')

    await expectNoLeftovers(findings, system, TICKET_TTL_MS)
    const channels = await system.redis.command('PUBSUB', 'CHANNELS', `${system.queuePrefix}:replies:*`)
    const open = Array.isArray(channels) ? channels.length : 0
    findings.expect(open === 1, `${open} gateways listen for replies, where one is left`)
    return findings
  }),
}
