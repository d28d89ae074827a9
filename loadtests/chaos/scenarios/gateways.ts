// Gateways are replaced and killed under kept and new connections. Their clocks disagree.
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@spillway/infra/processes/until'
import { ask, createApiClient, readMetric, respondAsync } from '@spillway/infra/rig/api-client'
import { clockOff } from '@spillway/infra/rig/clocks'
import { closedLoop } from '@spillway/infra/rig/open-loop'
import { Findings } from '../findings.ts'
import { type Scenario, underFault } from '../scenario.ts'
import { startBalancer } from '../stage/balancer.ts'
import { drained, expectNoLeftovers, onOwnRedis, type System } from '../stage/stage.ts'

const RESTARTS = 10
/**
 * Callers of each kind: with a kept connection, or a new one for each request. They wait for their
 * answers, because of small machines. A kept connection has many requests within DRAIN_MS: an idle
 * one is ended after it, perhaps while its client sends.
 */
const CALLERS = 10
const EVERY_MS = 100
/** The others ask for the public keys: 200 logins a second would overload a small machine. */
const EVERY_NTH_LOGIN = 8
/** Longer than the balancer takes to notice that a gateway is not ready. */
const DRAIN_MS = '3000'
const size = { credential: 'token', gateways: 2, workers: 1, gatewayEnv: { DRAIN_MS } } as const

export const gatewayRestarts: Scenario = {
  name: 'gateway-restarts',
  promise:
    'Ten gateways are replaced by SIGTERM under up to 200 requests a second, on kept and on new connections, behind a proxy that follows readiness: no request fails.',
  run: onOwnRedis(size, restart),
}

async function restart(system: System): Promise<Findings> {
  const findings = new Findings()
  const balancer = await startBalancer(system)
  // Without a gateway that it knows the balancer would close every connection.
  await balancer.knows(...system.gateways)
  const failures: string[] = []
  const clients = Array.from({ length: 2 * CALLERS }, (_, caller) => {
    const connection = caller % 2 === 0 ? 'kept' : 'new'
    return { connection, ...createApiClient(balancer.url, { connections: { keepAlive: connection === 'kept' } }) }
  })
  let [number, isOver] = [0, false]

  async function send({ connection, login, get }: (typeof clients)[number]): Promise<void> {
    const nth = number++
    const isLogin = nth % EVERY_NTH_LOGIN === 0
    const answer = await (isLogin ? login(system.login(nth)) : get('/.well-known/jwks.json'))
    findings.requests++
    // A ticket is an answer, and so is a refusal by a busy machine.
    if (answer.status === 200 || answer.status === 202) findings.succeeded++
    else if (answer.status === 503) findings.refused++
    else failures.push(`${connection}: ${answer.failure === undefined ? `status ${answer.status}` : answer.reason}`)
  }

  const loop = closedLoop({
    callers: clients.length,
    isOver: () => isOver,
    call: (caller) => Promise.all([clients.slice(caller, caller + 1).map(send), sleep(EVERY_MS)].flat()),
  })
  try {
    for (let n = 0; n < RESTARTS; n++) {
      const oldest = system.gateways.find(({ exit }) => exit === undefined)
      await balancer.knows(await system.gateway())
      const exit = await oldest?.stop()
      findings.expect(exit?.code === 0, `a gateway ended with ${exit?.code}`)
    }
  } finally {
    isOver = true
    await loop
    for (const client of clients) client.close()
    await balancer.close()
  }
  findings.expectAllAnswered(failures)
  return findings
}

// A gateway is killed: its clients go to the next one, and the state that it leaves behind expires.

const KILLED_TTL_MS = 5_000
const ORPHANS = 20

const killedSize = {
  credential: 'wait-100',
  gatewayEnv: { TICKET_TTL_MS: String(KILLED_TTL_MS), LOGIN_WAIT_MS: '2000' },
} as const

export const gatewayKilled: Scenario = {
  name: 'gateway-killed',
  promise:
    'A gateway is killed (SIGKILL): retries at another one succeed, its jobs expire unhashed, its state goes away.',
  run: onOwnRedis(killedSize, async (system) => {
    const findings = await underFault(system, {
      visitor: { tries: 3 },
      perSecond: 40,
      fault: async () => system.gateways[1]?.signal('SIGKILL'),
      afterMs: 4_000,
    })
    findings.expectAllSucceeded()

    // Without workers the jobs of another gateway stay. It dies, and no client asks for them.
    for (const worker of system.workers) await worker.stop()
    const doomed = await system.gateway()
    const logins = Array.from({ length: ORPHANS }, (_, n) =>
      ask(doomed.url, '/v1/login', { body: system.login(n), ...respondAsync }),
    )
    const ticketed = (await Promise.all(logins)).filter(({ status }) => status === 202)
    findings.expect(ticketed.length === ORPHANS, 'not every orphan had a ticket')
    doomed.signal('SIGKILL')
    await sleep(KILLED_TTL_MS)
    const worker = await system.worker()
    await drained(system)
    const jobs = (outcome: string) => readMetric(worker.opsUrl, 'spillway_jobs_total', `outcome="${outcome}"`)
    // A job that was passed over, because its client is absent, is counted as a ticket.
    const abandoned = () => readMetric(worker.opsUrl, 'spillway_absent_tickets_total', 'event="abandoned"')
    const dropped = async () => (await jobs('expired')) + (await abandoned())
    await until(async () => (await dropped()) >= ORPHANS, { timeoutMs: KILLED_TTL_MS }).catch(() => false)
    const [gone, hashed] = [await dropped(), await jobs('hashed')]
    findings.notes.push(`${gone} of ${ORPHANS} orphaned jobs dropped, ${hashed} hashed`)
    findings.expect(gone === ORPHANS && hashed === 0, 'jobs of the dead gateway did not expire')

    await expectNoLeftovers(findings, system, KILLED_TTL_MS)
    const channels = await system.redis.command('PUBSUB', 'CHANNELS', `${system.queuePrefix}:replies:*`)
    const open = Array.isArray(channels) ? channels.length : 0
    findings.expect(open === 1, `${open} gateways listen for replies, where one is left`)
    return findings
  }),
}

// Clocks that disagree: deadlines, tickets and tokens of one machine are good at all others.

const SHIFT_MS = 30_000
/** Shorter than the difference of the clocks: a deadline by the wrong clock is over or endless. */
const CLOCK_TTL_MS = '11000'

export const clock: Scenario = {
  name: 'clock',
  promise: "The clocks of gateways are 30 s ahead and 30 s behind the workers': no login is refused for it.",
  run: onOwnRedis({ gateways: 0, workers: 1, gatewayEnv: { TICKET_TTL_MS: CLOCK_TTL_MS } }, async (system) => {
    await Promise.all([SHIFT_MS, -SHIFT_MS].map((shiftMs) => system.gateway({ env: clockOff(shiftMs) })))
    await system.knowsWorkers(1)
    // The clocks are off from the beginning: there is no other fault.
    const findings = await underFault(system, { perSecond: 40, afterMs: 3_000 })
    findings.expectAllSucceeded()
    findings.expect(findings.ticketed === 0, `${findings.ticketed} logins got a ticket instead`)

    const { urls } = system.visitor()
    const issuedAtS: number[] = []
    for (const [here = '', there = ''] of [urls, urls.toReversed()]) {
      const { body, status } = await ask(here, '/v1/login', { body: system.login(0), ...respondAsync })
      findings.expect(status === 202, `a ticket was answered ${status}`)
      const redeemed = await ask(there, '/v1/tickets/redeem', { body: { ticket: body.ticket } })
      findings.expect(redeemed.status === 200, `a ticket of the other gateway was answered ${redeemed.status}`)
      const { accessToken, refreshToken } = redeemed.body
      issuedAtS.push(issuedAt(accessToken))
      const me = await ask(here, '/v1/me', { headers: { authorization: `Bearer ${accessToken}` } })
      findings.expect(me.status === 200, `a token of the other gateway was answered ${me.status}`)
      const refreshed = await ask(here, '/v1/token/refresh', { body: { refreshToken } })
      findings.expect(refreshed.status === 200, `a refresh at the other gateway was answered ${refreshed.status}`)
    }
    const [one = 0, other = 0] = issuedAtS
    const apartS = Math.abs(one - other)
    findings.notes.push(`by a preload that shifts Date; the gateways' tokens are ${apartS} s apart`)
    findings.expect(Math.abs(apartS - (2 * SHIFT_MS) / 1_000) <= 5, 'the clocks are not off, so nothing was tried')
    return findings
  }),
}

/** The time in a token, in epoch seconds by the clock of the gateway that signed it. */
function issuedAt(accessToken: unknown): number {
  const [, claims = ''] = String(accessToken).split('.')
  return JSON.parse(Buffer.from(claims, 'base64url').toString() || '{}').iat
}
