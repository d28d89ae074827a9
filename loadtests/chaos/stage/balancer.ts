// A load balancer before the gateways of a scenario.
import { until } from '@spillway/infra/processes/until'
import { startProxy } from '@spillway/infra/rig/tcp-proxy'
import { readinessOf } from '@spillway/infra/start/member'
import type { System } from './stage.ts'

const PROBE_EVERY_MS = 200

/** A balancer asks each gateway for its readiness, and repeats no request. */
export async function startBalancer({ gateways }: System) {
  const targets = new Map<string, URL>()
  const asked = new Set<string>()
  let turn = 0
  const proxy = await startProxy('http://gateways', () => {
    const chosen = [...targets.values()][turn++ % targets.size]
    return chosen && { host: chosen.hostname, port: Number(chosen.port) }
  })

  async function probe(url: string): Promise<void> {
    asked.add(url)
    const isReady = await readinessOf(url).then(
      ({ ready }) => ready,
      () => false,
    )
    if (isReady) targets.set(url, new URL(url))
    else targets.delete(url)
    asked.delete(url)
  }
  // A gateway that answers slowly does not delay the readiness of other gateways.
  const probing = setInterval(() => {
    for (const { url } of gateways) if (!asked.has(url)) void probe(url)
  }, PROBE_EVERY_MS)

  return {
    url: new URL(proxy.url).origin,
    /** Resolves when it sends requests to all of these gateways. */
    async knows(...awaited: { url: string }[]) {
      const isKnown = ({ url }: { url: string }) => targets.has(url)
      await until(() => awaited.every(isKnown), { what: 'gateways that the balancer finds ready' })
    },
    async close() {
      clearInterval(probing)
      await proxy.close()
    },
  }
}
