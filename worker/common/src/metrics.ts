/** The metrics of a process: their registry, and how they are declared. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, type LabelValues, Registry } from 'prom-client'

/**
 * How often Node samples the event loop's lag, in milliseconds; `nodejs_eventloop_lag_…` includes
 * this interval. The default of 10 wakes an idle process a hundred times a second.
 */
const LAG_SAMPLE_MS = 200

/** The labels of a metric, each with its foreseeable values, whose series start at 0. */
type Labels<Label extends string> = Readonly<Record<Label, readonly string[]>>

/** What a gauge reads: one value, or a value for each name of its label; undefined if unknown. */
type Reading = number | undefined | Readonly<Record<string, number | undefined>>

/** A Redis server of the queue, as gateways and workers tell of it. */
interface ShownRedis {
  address: string
  isConnected(): boolean
  /** Undefined before the server was asked. */
  eviction(): keyof typeof evictions | undefined
}
const evictions = { none: 0, possible: 1, unknown: Number.NaN }

/** A registry with Node's and the process's metrics, to which subclasses add theirs. */
export class Metrics {
  readonly registry = new Registry()

  constructor() {
    collectDefaultMetrics({ register: this.registry, eventLoopMonitoringPrecision: LAG_SAMPLE_MS })
  }

  protected counter<Label extends string>(name: string, help: string, labels?: Labels<Label>): Counter<Label> {
    const counter = new Counter({ name, help, labelNames: namesOf(labels), registers: [this.registry] })
    for (const series of seriesOf(labels)) counter.inc(series, 0)
    return counter
  }

  protected histogram<Label extends string>(
    name: string,
    help: string,
    buckets: number[],
    labels: Labels<Label>,
  ): Histogram<Label> {
    const histogram = new Histogram({ name, help, labelNames: namesOf(labels), buckets, registers: [this.registry] })
    for (const series of seriesOf(labels)) histogram.zero(series)
    return histogram
  }

  /** Adds a gauge that is read at each scrape. */
  gauge(name: string, help: string, read: () => Reading | Promise<Reading>, label = 'state'): void {
    new Gauge({
      ...{ name, help, labelNames: [label], registers: [this.registry] },
      async collect() {
        const values = await read()
        this.reset()
        if (typeof values === 'number') return this.set(values)
        for (const [named, value] of Object.entries(values ?? {}))
          if (value !== undefined) this.set({ [label]: named }, value)
      },
    })
  }

  /** Adds gauges of the Redis servers, which are by address where there are several. */
  exposeRedis(servers: () => readonly ShownRedis[]): void {
    const each = (read: (redis: ShownRedis) => number | undefined) => () => {
      const [first, ...others] = servers()
      if (first === undefined || others.length === 0) return first && read(first)
      return Object.fromEntries([first, ...others].map((redis) => [redis.address, read(redis)]))
    }
    this.gauge(
      'spillway_redis_connected',
      'Whether the connection to Redis is up; with several, whether each can be used, by its address',
      each((redis) => Number(redis.isConnected())),
      'redis',
    )
    this.gauge(
      'spillway_redis_evicts',
      'Whether Redis may evict keys; NaN where it does not tell; with several, by address',
      each((redis) => {
        const state = redis.eviction()
        return state && evictions[state]
      }),
      'redis',
    )
  }
}

function namesOf<Label extends string>(labels?: Labels<Label>): Label[] {
  const names: Label[] = []
  for (const name in labels) names.push(name)
  return names
}

function seriesOf<Label extends string>(labels?: Labels<Label>): LabelValues<Label>[] {
  let series: LabelValues<Label>[] = [{}]
  for (const label of namesOf(labels))
    series = series.flatMap((one) => (labels?.[label] ?? []).map((value) => ({ ...one, [label]: value })))
  return series
}
