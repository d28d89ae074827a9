// Endpoints that have nothing to do with hashing, asked at a steady rate while logins come in spikes.
import type { Keeper } from '@spillway/local/processes/keeper'
import { startProcess } from '@spillway/local/rig'
import { ask, type Credentials } from '@spillway/local/rig/api-client'
import { contenderCores } from '../measure/cores.ts'
import { startProbe } from '../measure/observe.ts'
import type { Findings } from './scenario.ts'

/** What to ask for, by its path; false is a failure. */
type Requests = Record<string, () => Promise<boolean>>

const PER_SECOND = 20

/** Logs in once, and from then on has four endpoints to ask. */
export async function neighboursOf(url: string, login: Credentials): Promise<Requests> {
  const session = (await ask(url, '/v1/login', { body: login })).body
  const headers = { authorization: `Bearer ${session.accessToken}` }
  let { refreshToken } = session
  async function refresh(): Promise<boolean> {
    const { status, body } = await ask(url, '/v1/token/refresh', { body: { refreshToken } })
    refreshToken = body.refreshToken ?? refreshToken
    return status === 200
  }
  // One after the other: a token that is used again after its grace ends the session.
  let refreshing = Promise.resolve(true)
  return {
    '/healthz': () => isOk(url, '/healthz'),
    '/readyz': () => isOk(url, '/readyz'),
    '/v1/me': () => isOk(url, '/v1/me', headers),
    '/v1/token/refresh': () => (refreshing = refreshing.then(refresh)),
  }
}

export async function isOk(url: string, path: string, headers: Record<string, string> = {}): Promise<boolean> {
  return (await ask(url, path, { headers })).status === 200
}

/**
 * Asks for all of these from now on, and for the root of a server that does nothing else, on the gateway's processor: its latency is the
 * machine's own delay, and the generator's. The returned function ends that.
 */
export async function watchNeighbours(keeper: Keeper, requests: Requests) {
  const bare = await startBareServer(keeper)
  const machine = startProbe(PER_SECOND, () => isOk(bare.url, ''))
  const probes = Object.entries(requests).map(([path, send]) => ({ path, probe: startProbe(PER_SECOND, send) }))
  return async () => {
    const ends = probes.map(async ({ path, probe }) => ({ path, ...(await probe.stop()) }))
    const [machineEnd, watched] = await Promise.all([machine.stop(), Promise.all(ends)])
    await bare.close()
    const machineMs = machineEnd.latency.atMs(99)
    return {
      /** The p99 of the server that does nothing. */
      machineMs,
      /** No request may fail; how long they took is noted beside it. */
      report(findings: Findings) {
        findings.notes.push(`a bare server p99 ${machineMs.toFixed(1)} ms`)
        for (const { path, latency, failed } of watched) {
          findings.notes.push(`${path} p99 ${latency.atMs(99).toFixed(1)} ms`)
          findings.expect(failed === 0, `${path} failed ${failed} times`)
        }
      },
    }
  }
}

const BARE_PROGRAM = `const server = require('node:http').createServer((_, answer) => answer.end('{}'))
server.listen(0, '127.0.0.1', () => console.log('http://127.0.0.1:' + server.address().port))`

async function startBareServer(keeper: Keeper) {
  const cores = contenderCores && [0]
  const server = startProcess({ entry: '-e', args: [BARE_PROGRAM], keeper, cores })
  const { msg: url = '' } = await server.waitForLog(({ msg }) => msg?.startsWith('http') === true)
  return { url, close: server.close }
}
