/** Reports of several queues as one: jobs add up, the oldest counts, workers count once. */

import { within } from '@spillway/common/within'
import type { QueueReport, QueueReporter } from '../jobs/report.js'

/** Milliseconds that one Redis server is waited for: operators do not wait for a silent one. */
const ANSWER_MS = 1_000

/** Combines the reports of queues that answer. Rejects when no queue answers. */
export function shareReport(reporters: readonly QueueReporter[]): QueueReporter {
  const [only] = reporters
  if (only !== undefined && reporters.length === 1) return only
  return {
    async read() {
      const answers = await Promise.allSettled(reporters.map((reporter) => within(ANSWER_MS, reporter.read())))
      const reports = answers.flatMap((answer) => (answer.status === 'fulfilled' ? (answer.value ?? []) : []))
      if (reports.length === 0) throw new Error('no Redis gave a report')
      return reports.reduce(combine)
    },
  }
}

function combine(a: QueueReport, b: QueueReport): QueueReport {
  return {
    jobs: {
      waiting: a.jobs.waiting + b.jobs.waiting,
      deferred: a.jobs.deferred + b.jobs.deferred,
      active: a.jobs.active + b.jobs.active,
      absent: a.jobs.absent + b.jobs.absent,
      completed: a.jobs.completed + b.jobs.completed,
      failed: a.jobs.failed + b.jobs.failed,
    },
    abandoned: a.abandoned + b.abandoned,
    paused: a.paused || b.paused,
    oldestMs: {
      waiting: Math.max(a.oldestMs.waiting, b.oldestMs.waiting),
      deferred: Math.max(a.oldestMs.deferred, b.oldestMs.deferred),
    },
    workers: combineWorkers(a.workers, b.workers),
    recent: [...a.recent, ...b.recent],
  }
}

/** A worker tells each Redis server its slots, and the jobs that it finished there. */
function combineWorkers(a: QueueReport['workers'], b: QueueReport['workers']): QueueReport['workers'] {
  const byId = new Map(a.map((worker) => [worker.id, worker]))
  for (const worker of b) {
    const known = byId.get(worker.id)?.finished ?? { answered: 0, expired: 0, failed: 0 }
    const { answered, expired, failed } = worker.finished
    const finished = {
      answered: known.answered + answered,
      expired: known.expired + expired,
      failed: known.failed + failed,
    }
    byId.set(worker.id, { ...worker, finished })
  }
  return [...byId.values()]
}
