// What a spike of logins does to everyone else: two endpoints that have nothing to do with it are asked at a steady rate
// meanwhile, one that asks the file system and one that asks nothing at all.
import { type ApiClient, createApiClient } from '@spillway/local/testing/api-client'
import { openLoop } from '../load/open.ts'
import { Latency } from './latency.ts'

/** Of each endpoint, per second: enough for a p99 in ten seconds, little enough to cost a hundredth of a core. */
const RATE = 40

export interface Bystanders {
  neighbour: Latency
  healthz: Latency
}

/** Asks both endpoints until `over` settles, and for the answers still due then. */
export async function watchBystanders(url: string, neighbourPath: string, over: Promise<unknown>): Promise<Bystanders> {
  const stop = new AbortController()
  const client = createApiClient(url)
  const stopped = over.finally(() => stop.abort()).catch(() => undefined)
  const [neighbour, healthz] = await Promise.all([
    ask(client, neighbourPath, stop.signal),
    ask(client, '/healthz', stop.signal),
  ])
  await stopped
  client.close()
  return { neighbour, healthz }
}

async function ask(client: ApiClient, path: string, signal: AbortSignal): Promise<Latency> {
  const latency = new Latency()
  await openLoop({
    rateAt: () => RATE,
    durationMs: Number.POSITIVE_INFINITY,
    signal,
    send: async (dueMs) => {
      await client.get(path)
      latency.record(performance.now() - dueMs)
    },
  })
  return latency
}
