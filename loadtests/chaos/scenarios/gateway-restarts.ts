// Gateways are replaced one after the other, beneath clients that keep their connections and clients that open one for each request.
import { Agent, type RequestOptions, request } from 'node:http'
import { startLoop } from '@spillway/local/rig/open-loop'
import { Findings, type Scenario } from '../scenario.ts'
import { startBalancer } from '../stage/balancer.ts'
import { onOwnRedis, type System } from '../stage/system.ts'

const RESTARTS = 10
const PER_SECOND = 200
/** One of so many is a login, the others ask for the public keys: on a small machine 200 logins a second would be an overload. */
const EVERY_NTH_LOGIN = 8
/**
 * Kept connections, used in turn: each has a request many times within DRAIN_MS. One that has none in that time is ended at its end, when
 * its client may just be sending.
 */
const KEPT = 10
/** Longer than the balancer takes to hear that a gateway is no longer ready. */
const DRAIN_MS = '1500'
/** A machine that is busy otherwise may refuse some: that is an answer. */
const BUSY = 'status 503'
const size = { credential: 'token', gateways: 2, workers: 1, gatewayEnv: { DRAIN_MS } } as const

export const gatewayRestarts: Scenario = {
  name: 'gateway-restarts',
  promise:
    'Ten gateways are replaced by SIGTERM under 200 requests a second, on kept and on new connections, behind a proxy that follows readiness: no request fails.',
  run: onOwnRedis(size, restart),
}

async function restart(system: System): Promise<Findings> {
  const findings = new Findings()
  const balancer = await startBalancer(system)
  const agents = {
    kept: new Agent({ keepAlive: true, maxSockets: KEPT, scheduling: 'fifo' }),
    new: new Agent({ keepAlive: false }),
  }
  const failures = new Map<string, number>()
  let number = 0
  const loop = startLoop({
    rateAt: () => PER_SECOND,
    async send() {
      const nth = number++
      const connection = nth % 2 === 0 ? 'kept' : 'new'
      // The pairs of kept and new connections take turns with logins.
      const isLogin = Math.floor(nth / 2) % EVERY_NTH_LOGIN === 0
      const login = isLogin ? JSON.stringify(system.login(nth)) : undefined
      const failure = await failureOf(balancer.url, { agent: agents[connection] }, login)
      findings.requests++
      if (failure === undefined) findings.succeeded++
      else if (failure === BUSY) findings.refused++
      else failures.set(`${connection}: ${failure}`, (failures.get(`${connection}: ${failure}`) ?? 0) + 1)
    },
  })
  try {
    await balancer.knows(...system.gateways)
    for (let n = 0; n < RESTARTS; n++) {
      const oldest = system.gateways.find(({ exit }) => exit === undefined)
      await balancer.knows(await system.gateway())
      const exit = await oldest?.stop()
      findings.expect(exit?.code === 0, `a gateway ended with ${exit?.code}`)
    }
  } finally {
    await loop.stop()
    for (const agent of Object.values(agents)) agent.destroy()
    await balancer.close()
  }
  findings.failed = findings.requests - findings.succeeded - findings.refused
  findings.notes.push(...[...failures].map(([failure, times]) => `${times} × ${failure}`))
  findings.expect(findings.failed === 0, `${findings.failed} requests had no answer`)
  return findings
}

/** What went wrong with one request; undefined where it was answered, a login with a ticket too. Nothing is tried twice. */
function failureOf(url: string, options: RequestOptions, login: string | undefined): Promise<string | undefined> {
  return new Promise((resolve) => {
    const path = login === undefined ? '/.well-known/jwks.json' : '/v1/login'
    const method = login === undefined ? 'GET' : 'POST'
    const headers = login === undefined ? {} : { 'content-type': 'application/json' }
    const sent = request(url + path, { ...options, method, headers }, (answer) => {
      answer.resume().on('error', (error) => resolve(error.message))
      answer.on('end', () =>
        resolve(answer.statusCode === 200 || answer.statusCode === 202 ? undefined : `status ${answer.statusCode}`),
      )
    })
    sent.on('error', (error) => resolve(error.message))
    sent.end(login)
  })
}
