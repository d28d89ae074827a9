// The row "How deep is the queue?" What waits, for how long, and when all of it is answered.
import type { Row } from '../panel.ts'
import { quantiles } from '../promql.ts'

export const howDeepIsTheQueue: Row = {
  title: 'How deep is the queue?',
  panels: [
    {
      title: 'Jobs in the queue',
      description: 'waiting: a request is held for it. deferred: only a ticket is. active: being hashed.',
      queries: [
        { expr: 'max by (state) (spillway_queue_jobs{state=~"waiting|deferred|active"})', legend: '{{state}}' },
      ],
    },
    {
      title: 'The oldest waits for',
      description: 'Age of the job that is next. A waiting one should be taken within the 8 s that a request is held.',
      unit: 's',
      thresholds: { warn: 8, bad: 30 },
      queries: [{ expr: 'max by (state) (spillway_oldest_job_age_seconds)', legend: '{{state}}' }],
    },
    {
      title: 'Time in the queue',
      description: 'From adding a job to its start, as workers saw it.',
      unit: 's',
      thresholds: { warn: 2, bad: 8 },
      queries: quantiles('spillway_queue_wait_seconds'),
    },
    {
      title: 'All that waits is answered in',
      description: 'As predicted: depth by capacity, tickets included. No line means no worker (+Inf).',
      unit: 's',
      width: 12,
      thresholds: { warn: 8, bad: 60 },
      queries: [{ expr: 'max(spillway_predicted_wait_seconds)', legend: 'predicted' }],
    },
    {
      title: 'Finished jobs kept',
      description: 'For looking at on the board: 500 of each kind at most, ten minutes at most.',
      width: 12,
      queries: [{ expr: 'max by (state) (spillway_queue_jobs{state=~"completed|failed"})', legend: '{{state}}' }],
    },
  ],
}
