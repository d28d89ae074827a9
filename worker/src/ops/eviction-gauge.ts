/** The gauge of Redis servers that may evict keys, of gateways and workers. */
import type { Eviction } from '@spillway/client/redis/eviction'
import { Gauge, type Registry } from 'prom-client'

const values: Record<Eviction, number> = { none: 0, possible: 1, unknown: Number.NaN }

/** @param servers read at each scrape; a server that was not asked yet has no value */
export function exposeEviction(
  registry: Registry,
  servers: () => readonly { address: string; eviction(): Eviction | undefined }[],
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
