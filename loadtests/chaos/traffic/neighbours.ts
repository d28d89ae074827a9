// What has nothing to do with hashing, asked at a steady rate while logins come in spikes.
import { ask, type Credentials } from '@spillway/local/testing/api-client'
import { startProbe } from './probe.ts'

export interface Neighbour {
  path: string
  p99Ms: number
  failed: number
}

const EVERY_MS = 50
/** The name of the server that does nothing: what it takes is the machine's own delay, and that of the generator. */
export const BARE = 'a bare server'

/**
 * Logs in once, and from then on asks each of four endpoints, and the root of a server that does nothing else. The returned
 * function ends that and says how it went, the bare server last.
 */
export async function watchNeighbours(
  url: string,
  bareUrl: string,
  login: Credentials,
): Promise<() => Promise<Neighbour[]>> {
  const session = (await ask(url, '/v1/login', { body: login })).body
  const authorization = `Bearer ${session.accessToken}`
  let { refreshToken } = session
  const requests: [path: string, send: () => Promise<boolean>][] = [
    ...['/healthz', '/readyz'].map((path): [string, () => Promise<boolean>] => [
      path,
      async () => (await ask(url, path)).status === 200,
    ]),
    ['/v1/me', async () => (await ask(url, '/v1/me', { headers: { authorization } })).status === 200],
    [
      '/v1/token/refresh',
      async () => {
        const { status, body } = await ask(url, '/v1/token/refresh', { body: { refreshToken } })
        refreshToken = body.refreshToken
        return status === 200
      },
    ],
    [BARE, async () => (await ask(bareUrl, '/')).status === 200],
  ]
  const probes = requests.map(([path, send]) => ({ path, probe: startProbe(send, EVERY_MS) }))
  return () =>
    Promise.all(
      probes.map(async ({ path, probe }) => {
        const { latency, failed } = await probe.stop()
        return { path, p99Ms: latency.atMs(99), failed }
      }),
    )
}
