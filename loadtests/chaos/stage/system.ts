// The gateways and workers of one scenario. Remembers what went wrong with them, so that no scenario can overlook a crash.
import { type LogLine, openSpillway, type Spillway, type SpillwayOptions } from '@spillway/local/testing'
import type { Stage } from './stage.ts'

export interface System extends Spillway {
  /** One sentence for each process that ended by itself, or printed what is no log line. */
  complaints(): string[]
  /** The commonest warnings of all processes, each with how often it came. */
  warnings(): string[]
}

/** The database is the stage's own, unless a proxy is in between. */
export type SystemOptions = Omit<SpillwayOptions, 'databaseUrl'> & { databaseUrl?: string }

/** Hashes by doubles are accepted, so that load need not cost processor time. */
export function openSystem({ keeper, postgres }: Stage, options: SystemOptions): System {
  const spillway = openSpillway({
    databaseUrl: postgres.url,
    keeper,
    keepOnly: 'warnings',
    ...options,
    env: { SPILLWAY_TEST_HASHES: 'true' },
    workerEnv: { WORKER_CONCURRENCY: '4', ...options.workerEnv },
  })
  const all = () => [...spillway.gateways, ...spillway.workers]
  return {
    ...spillway,
    complaints() {
      const crashes = all()
        .filter(({ exit, wasEnded }) => exit !== undefined && !wasEnded)
        .map(({ name, exit, logs }) => `${name} crashed (${exit?.signal ?? exit?.code}): ${strays(logs, -5)}`)
      const printed = all()
        .filter(({ logs }) => logs.some(isStray))
        .map(({ name, logs }) => `${name} printed: ${strays(logs, 0, 5)}`)
      return [...crashes, ...printed]
    },
    warnings() {
      const times = new Map<string, number>()
      for (const { name, logs } of all()) {
        for (const { msg, err } of logs.filter(isWarning)) {
          const text = `${name}: ${msg} (${JSON.stringify(err)?.slice(0, 200)})`
          times.set(text, (times.get(text) ?? 0) + 1)
        }
      }
      const commonest = [...times].toSorted(([, a], [, b]) => b - a).slice(0, 8)
      return commonest.map(([text, count]) => `${count} × ${text}`)
    },
  }
}

function isWarning({ level }: LogLine): boolean {
  return level !== undefined && level !== 'info'
}

/** What is no log line: a stack, a warning of Node's. Nothing of it, unless something is broken. */
function isStray({ level }: LogLine): boolean {
  return level === undefined
}

function strays(logs: LogLine[], from: number, to?: number): string {
  const lines = logs.filter(isStray).map(({ msg }) => msg)
  return lines.slice(from, to).join(' / ')
}
