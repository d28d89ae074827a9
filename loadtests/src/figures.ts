// The figures scenarios produce: what each is called, its unit, and which way is better.

export interface FigureKind {
  title: string
  unit: string
  better: 'higher' | 'lower'
}

const figures = {
  perSecond: { title: 'Answers a second', unit: '/s', better: 'higher' },
  loginPerSecond: { title: 'Verdicts a second', unit: '/s', better: 'higher' },
  peakPerSecond: { title: 'Best second', unit: '/s', better: 'higher' },
  kneePerSecond: { title: 'Knee', unit: '/s', better: 'higher' },
  efficiencyPercent: { title: 'Of the bare loop', unit: '%', better: 'higher' },
  barePerSecond: { title: 'The bare loop', unit: '/s', better: 'higher' },
  p50Ms: { title: 'p50', unit: 'ms', better: 'lower' },
  p95Ms: { title: 'p95', unit: 'ms', better: 'lower' },
  p99Ms: { title: 'p99', unit: 'ms', better: 'lower' },
  neighbourP50Ms: { title: 'Neighbour p50', unit: 'ms', better: 'lower' },
  neighbourP99Ms: { title: 'Neighbour p99', unit: 'ms', better: 'lower' },
  healthzP99Ms: { title: '/healthz p99', unit: 'ms', better: 'lower' },
  failedPercent: { title: 'Errors and time-outs', unit: '%', better: 'lower' },
  timeoutPercent: { title: 'Time-outs', unit: '%', better: 'lower' },
  deferredPercent: { title: 'Told when to come back', unit: '%', better: 'lower' },
  answeredPercent: { title: 'Answered in time', unit: '%', better: 'higher' },
  apiPercent: { title: 'API process, of a core', unit: '%', better: 'lower' },
  apiMb: { title: 'API process, memory', unit: 'MB', better: 'lower' },
  workerMb: { title: 'Worker, memory', unit: 'MB', better: 'lower' },
  apiReadyMs: { title: 'API process, start', unit: 'ms', better: 'lower' },
  workerReadyMs: { title: 'Worker, start', unit: 'ms', better: 'lower' },
  generatorPercent: { title: 'Load generator, of a core', unit: '%', better: 'lower' },
  processorMsPerAnswer: { title: 'Processor time an answer', unit: 'ms', better: 'lower' },
  hashProcessorMs: { title: 'Processor time a verify', unit: 'ms', better: 'lower' },
  ofPackagePercent: { title: 'Of the fastest package', unit: '%', better: 'lower' },
  gatewayMsPerLogin: { title: 'Gateway time a login', unit: 'ms', better: 'lower' },
  redisMsPerLogin: { title: 'Redis time a login', unit: 'ms', better: 'lower' },
  redisServesPerSecond: { title: 'One Redis serves', unit: '/s', better: 'higher' },
  overheadMs: { title: 'Over the bare hash', unit: 'ms', better: 'lower' },
  bareHashMs: { title: 'The bare hash', unit: 'ms', better: 'lower' },
  idealPercent: { title: 'Of the ideal', unit: '%', better: 'higher' },
} as const satisfies Record<string, FigureKind>

/** The kind of a figure by the name in a JSON file; undefined for one this version does not know. */
export function figureKind(name: string): FigureKind | undefined {
  return Object.entries(figures).find(([known]) => known === name)?.[1]
}

/** A value as people read it: three digits, with a blank between thousands left to the locale. */
export function show(value: number): string {
  if (!Number.isFinite(value)) return '–'
  // A thousandth is not nothing.
  if (value !== 0 && Math.abs(value) < 0.1) return value.toLocaleString('en', { maximumSignificantDigits: 1 })
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toLocaleString('en', { minimumFractionDigits: 0, maximumFractionDigits: digits })
}
