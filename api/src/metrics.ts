/** What a gateway counts, in Prometheus's names and units (seconds). No label grows with users. */
import type { Load } from '@spillway/worker/client'
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'

/** A registry of this process's metrics and of the queue as this gateway last read it. */
export function createGatewayMetrics(load: () => Load): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  new Gauge({
    name: 'spillway_queue_jobs',
    help: 'Jobs in the queue, by state',
    labelNames: ['state'],
    registers,
    collect() {
      const { waiting, active } = load()
      this.set({ state: 'waiting' }, waiting)
      this.set({ state: 'active' }, active)
    },
  })
  new Gauge({
    name: 'spillway_capacity_jobs_per_second',
    help: 'Jobs a second that all live workers could finish together',
    registers,
    collect() {
      this.set(load().jobsPerSecond)
    },
  })
  new Gauge({
    name: 'spillway_workers',
    help: 'Workers that published their capacity of late',
    registers,
    collect() {
      this.set(load().workers)
    },
  })
  return registry
}
