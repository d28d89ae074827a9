// Endpoints that have nothing to do with hashing, asked at a steady rate while logins come in spikes.
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { type Keeper, stopOrder } from '@spillway/local/processes/keeper'
import { ask, type Credentials } from '@spillway/local/testing/api-client'
import { moveTo } from '../measure/cores.ts'
import { startProbe } from '../measure/probe.ts'

export interface Neighbour {
  path: string
  p99Ms: number
  failed: number
}

const PER_SECOND = 20
/** The name of the server that does nothing: its latency is the machine's own delay, and that of the generator. */
export const BARE = 'a bare server'

/**
 * Logs in once, and from then on asks each of four endpoints, and the root of a server that does nothing else. The returned
 * function ends that and gives the latencies, those of the bare server last.
 */
export async function watchNeighbours(
  url: string,
  bareUrl: string,
  login: Credentials,
): Promise<() => Promise<Neighbour[]>> {
  const session = (await ask(url, '/v1/login', { body: login })).body
  const headers = { authorization: `Bearer ${session.accessToken}` }
  let { refreshToken } = session
  const get = async (path: string, from = url) => (await ask(from, path, { headers })).status === 200
  async function refresh(): Promise<boolean> {
    const { status, body } = await ask(url, '/v1/token/refresh', { body: { refreshToken } })
    refreshToken = body.refreshToken ?? refreshToken
    return status === 200
  }
  // One after the other: a token that is used again after its grace ends the session.
  let refreshing = Promise.resolve(true)
  const requests: Record<string, () => Promise<boolean>> = {
    '/healthz': () => get('/healthz'),
    '/readyz': () => get('/readyz'),
    '/v1/me': () => get('/v1/me'),
    '/v1/token/refresh': () => (refreshing = refreshing.then(refresh)),
    [BARE]: () => get('/', bareUrl),
  }
  const probes = Object.entries(requests).map(([path, send]) => ({ path, probe: startProbe(PER_SECOND, send) }))
  return () =>
    Promise.all(
      probes.map(async ({ path, probe }) => {
        const { latency, failed } = await probe.stop()
        return { path, p99Ms: latency.atMs(99), failed }
      }),
    )
}

const BARE_PROGRAM = `const server = require('node:http').createServer((_, answer) => answer.end('{}'))
server.listen(0, '127.0.0.1', () => console.log('http://127.0.0.1:' + server.address().port))`

/** Starts the server that does nothing, on these cores if any are given. */
export async function startBareServer(keeper: Keeper, cores?: readonly number[]) {
  const child = keeper.spawn({ command: process.execPath, args: ['-e', BARE_PROGRAM], stopOrder: stopOrder.tool })
  if (child.stdout === null || child.pid === undefined) throw new Error('the bare server could not be started')
  const [url] = await once(createInterface(child.stdout), 'line')
  if (cores !== undefined) moveTo(child.pid, cores)
  return { url: String(url), close: () => child.kill() }
}
