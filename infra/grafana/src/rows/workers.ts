// The row "Are workers enough?" Demand beside capacity, and what each worker does.
import type { Row } from '../panel.ts'
import { rate } from '../promql.ts'

/** What starts a hash: the requests whose rate the workers must keep up with. */
const HASHING = 'route=~"/v1/login|/v1/users|/v1/me/password"'

export const areWorkersEnough: Row = {
  title: 'Are workers enough?',
  panels: [
    {
      title: 'Demand and capacity',
      description:
        'Requests that hash, jobs that ended, and what all live workers could do. Demand above capacity fills the queue.',
      unit: 'reqps',
      width: 12,
      queries: [
        { expr: rate(`spillway_http_requests_total{${HASHING},outcome!="too_many_requests"}`), legend: 'demand' },
        { expr: rate('spillway_jobs_total'), legend: 'finished' },
        { expr: 'max(spillway_capacity_jobs_per_second)', legend: 'capacity' },
      ],
    },
    {
      title: 'Workers and slots',
      description:
        'Slots are jobs hashed at a time over all workers. All busy for minutes: scale up, or the maximum is reached.',
      width: 12,
      queries: [
        { expr: 'max(spillway_workers)', legend: 'workers' },
        { expr: 'max(spillway_slots)', legend: 'slots' },
        { expr: 'sum(spillway_worker_slots_busy)', legend: 'busy' },
      ],
    },
    {
      title: 'Busy slots of each worker',
      description: 'Share of its slots that hold a job. One that stays at 0 while others are full takes no jobs.',
      unit: 'percentunit',
      queries: [{ expr: 'spillway_worker_slots_busy / spillway_worker_slots', legend: '{{instance}}' }],
    },
    {
      title: 'Jobs by outcome',
      description: 'expired jobs came too late to be hashed; forged and hashing_failed ones must not occur.',
      unit: 'reqps',
      queries: [{ expr: rate('spillway_jobs_total', 'outcome'), legend: '{{outcome}}' }],
    },
    {
      title: 'Workers without progress',
      description: 'For how long jobs have waited and a slot been free. The probe restarts a worker after 15 s.',
      unit: 's',
      thresholds: { warn: 5, bad: 15 },
      queries: [{ expr: 'spillway_worker_stuck_seconds', legend: '{{instance}}' }],
    },
  ],
}
