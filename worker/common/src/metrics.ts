/** The metrics of a process: their registry, and how they are declared. */

import { Counter, collectDefaultMetrics, Gauge, Histogram, type LabelValues, Registry } from 'prom-client'
import type { KeyList } from './secrets.js'

/**
 * How often Node samples the event loop's lag, in milliseconds; `nodejs_eventloop_lag_…` includes
 * this interval. The default of 10 wakes an idle process a hundred times a second.
 */
const LAG_SAMPLE_MS = 200

/** The labels of a metric, each with its foreseeable values, whose series start at 0. */
type Labels<Label extends string> = Readonly<Record<Label, readonly string[]>>

/** What a gauge reads: one value, or a value for each name of its label; undefined if unknown. */
type Reading = number | undefined | Readonly<Record<string, number | undefined>>

interface ShownRedis {
  /** Whether Redis is connected and accepts writes. */
  takesWrites(): boolean | Promise<boolean>
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

  /** Adds a gauge that is read at each scrape; with a label, it has one value for each name. */
  gauge(name: string, help: string, read: () => Reading | Promise<Reading>, label?: string): void {
    new Gauge({
      ...{ name, help, labelNames: label === undefined ? [] : [label], registers: [this.registry] },
      async collect() {
        const values = await read()
        this.reset()
        if (typeof values === 'number') return this.set(values)
        for (const [named, value] of Object.entries(values ?? {}))
          if (value !== undefined && label !== undefined) this.set({ [label]: named }, value)
      },
    })
  }

  /** Adds a gauge that is always 1; its labels carry the information. */
  info<Label extends string>(name: string, help: string, labels: Label[], read: () => LabelValues<Label>[]): void {
    new Gauge({
      ...{ name, help, labelNames: labels, registers: [this.registry] },
      collect() {
        this.reset()
        for (const series of read()) this.set(series, 1)
      },
    })
  }

  /** Adds a gauge of the keys in use, by id: a rotation continues when all processes have them. */
  exposeKeys(lists: readonly KeyList[]): void {
    this.info(
      'spillway_key_info',
      'Always 1; its labels are a setting, the id of a key in it, and whether the key is the first, which seals or signs',
      ['setting', 'kid', 'first'],
      () =>
        lists.flatMap((list) => list.kids().map((kid, n) => ({ setting: list.setting, kid, first: String(n === 0) }))),
    )
  }

  /** Adds gauges of Redis. */
  exposeRedis({ takesWrites, eviction }: ShownRedis): void {
    this.gauge('spillway_redis_connected', 'Whether Redis is connected and takes writes', async () =>
      Number(await takesWrites()),
    )
    this.gauge('spillway_redis_evicts', 'Whether Redis may evict keys; NaN where it does not tell', () => {
      const state = eviction()
      return state && evictions[state]
    })
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
