// Every gateway and every worker is replaced under load, one after the other, each by SIGTERM.
import { setTimeout as sleep } from 'node:timers/promises'
import { readinessOf, startProxy, until } from '@spillway/local/testing'
import type { Scenario } from '../scenario.ts'
import { onOwnRedis, type System } from '../stage/system.ts'
import { underFault } from '../under-fault.ts'

const PAUSE_MS = 500
const PROBE_EVERY_MS = 200
/** The drain is longer than a balancer takes to hear that a gateway is no longer ready. */
const size = { credential: 'wait-100', gatewayEnv: { DRAIN_MS: '2000' } } as const

export const rollingRestart: Scenario = {
  name: 'rolling-restart',
  promise: 'Every gateway and worker is replaced under load, by SIGTERM: not one request fails.',
  run: onOwnRedis(size, async (system) => {
    const [gateways, workers] = [[...system.gateways], [...system.workers]]
    const balancer = await startBalancer(system)
    try {
      await balancer.knows(...gateways)
      const findings = await underFault(system, {
        // A connection for each request, so that the balancer chooses for each.
        visitor: { urls: [balancer.url], headers: () => ({ connection: 'close' }) },
        perSecond: 20,
        async fault() {
          for (const worker of workers) {
            await worker.stop()
            await system.worker()
            await sleep(PAUSE_MS)
          }
          for (const gateway of gateways) {
            await gateway.stop()
            await balancer.knows(await system.gateway())
            await sleep(PAUSE_MS)
          }
        },
        afterMs: 2_000,
      })
      findings.expectAllSucceeded()
      const codes = [...gateways, ...workers].map(({ exit }) => exit?.code)
      const endedWell = codes.every((code) => code === 0)
      findings.expect(endedWell, `exit codes were ${codes.join(', ')}`)
      return findings
    } finally {
      await balancer.close()
    }
  }),
}

/** A load balancer as deployments have one: it asks every gateway whether it is ready, and tries nothing twice. */
async function startBalancer({ gateways }: System) {
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
