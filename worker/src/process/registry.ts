/** The metrics registry of a process. Gateways import it too (`@spillway/worker/registry`). */
import { collectDefaultMetrics, Registry } from 'prom-client'

/**
 * How often Node samples the event loop's lag, in milliseconds; `nodejs_eventloop_lag_…` includes this interval. The default of 10
 * wakes an idle process a hundred times a second.
 */
const LAG_SAMPLE_MS = 200

/** Creates a registry that includes Node's and the process's metrics. */
export function createRegistry(): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_SAMPLE_MS })
  return registry
}
