// A load balancer before the gateways of a scenario.
import { setTimeout as sleep } from 'node:timers/promises'
import { readinessOf, startProxy, until } from '@spillway/local/rig'
import type { System } from './stage.ts'

const PROBE_EVERY_MS = 200

/** As deployments have one: it asks every gateway whether it is ready, and tries nothing twice. */
export async function startBalancer({ gateways }: System) {
  let ready: URL[] = []
  let turn = 0
  const closing = new AbortController()
  const proxy = await startProxy('http://gateways', () => {
    const chosen = ready[turn++ % ready.length]
    return chosen && { host: chosen.hostname, port: Number(chosen.port) }
  })
  const probing = (async () => {
    while (!closing.signal.aborted) {
      const isReady = ({ url }: { url: string }) =>
        readinessOf(url).then(
          ({ ready }) => ready,
          () => false,
        )
      const asked = [...gateways]
      const answers = await Promise.all(asked.map(isReady))
      ready = asked.filter((_, n) => answers[n]).map(({ url }) => new URL(url))
      await sleep(PROBE_EVERY_MS)
    }
  })()
  return {
    url: new URL(proxy.url).origin,
    /** Resolves when it sends requests to all of these gateways. */
    async knows(...awaited: { url: string }[]) {
      const isKnown = ({ url }: { url: string }) => ready.some(({ origin }) => origin === url)
      await until(() => awaited.every(isKnown), { what: 'gateways that the balancer finds ready' })
    },
    async close() {
      closing.abort()
      await probing
      await proxy.close()
    },
  }
}
