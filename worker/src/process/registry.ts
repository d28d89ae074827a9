/** Where a process keeps its metrics. A door of its own: gateways keep theirs in the same way. */
import { collectDefaultMetrics, Registry } from 'prom-client'

/**
 * How often Node looks whether its event loop is late, in milliseconds; `nodejs_eventloop_lag_…` includes it. With the usual 10 an
 * idle process is woken a hundred times a second for that alone, which is a quarter of what an idle worker does.
 */
const LAG_EVERY_MS = 50

/** A registry of its own, with Node's and the process's metrics in it. */
export function createRegistry(): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_EVERY_MS })
  return registry
}
