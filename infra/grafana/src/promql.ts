// What the queries of the dashboard have in common.

/** The requests that log in. */
export const LOGIN = 'route="/v1/login"'

/** Of all that is scraped, the gateways and workers: names of jobs differ from one Prometheus to the next. */
export const OURS = 'and on (job, instance) spillway_redis_connected'

/** How fast a counter rises over all processes, in each second, by these labels. */
export const rate = (counter: string, by = '') => `sum ${by && `by (${by}) `}(rate(${counter}[$__rate_interval]))`

/** A quantile of a histogram over all processes, by this label. */
export const quantile = (q: number, histogram: string, labels = '', by = '') =>
  `histogram_quantile(${q}, sum by (le${by && `, ${by}`}) (rate(${histogram}_bucket{${labels}}[$__rate_interval])))`

/** The three quantiles that are shown of a time, as the queries of a panel. */
export const quantiles = (histogram: string, labels = '') =>
  [0.5, 0.95, 0.99].map((q) => ({ expr: quantile(q, histogram, labels), legend: `p${q * 100}` }))
