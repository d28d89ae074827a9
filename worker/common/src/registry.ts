/** The metrics registry of a process. */
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'

/**
 * How often Node samples the event loop's lag, in milliseconds; `nodejs_eventloop_lag_…` includes
 * this interval. The default of 10 wakes an idle process a hundred times a second.
 */
const LAG_SAMPLE_MS = 200

/** Creates a registry that includes Node's and the process's metrics. */
export function createRegistry(): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_SAMPLE_MS })
  return registry
}

// The gauge of Redis servers that may evict keys, of gateways and workers.

const values = { none: 0, possible: 1, unknown: Number.NaN }

/** @param servers read at each scrape; a server that was not asked yet has no value */
export function exposeEviction(
  registry: Registry,
  servers: () => readonly { address: string; eviction(): keyof typeof values | undefined }[],
): void {
  new Gauge({
    name: 'spillway_redis_evicts',
    help: 'Whether Redis may evict keys; NaN where it does not tell; with several, by address',
    labelNames: ['redis'],
    registers: [registry],
    collect() {
      const all = servers()
      for (const { address, eviction } of all) {
        const state = eviction()
        if (state !== undefined) this.set(all.length === 1 ? {} : { redis: address }, values[state])
      }
    },
  })
}
