// The row "Does everything hold together?" Redis, jobs that changed hands, memory, and what operators have switched.
import type { Row } from '../panel.ts'
import { OURS, rate } from '../promql.ts'

export const doesItHoldTogether: Row = {
  title: 'Does everything hold together?',
  panels: [
    {
      title: 'Connected to Redis',
      description: '1 is connected. At 0 a gateway answers 503, and a worker waits.',
      queries: [{ expr: 'spillway_redis_connected', legend: '{{job}} {{instance}}' }],
    },
    {
      title: 'Jobs that changed hands',
      description:
        'stalled: taken over from a worker that vanished. handed back: by one that stopped. added again: lost by Redis. cancelled: the client had gone.',
      unit: 'reqps',
      queries: [
        { expr: rate('spillway_jobs_stalled_total'), legend: 'stalled' },
        { expr: rate('spillway_jobs_handed_back_total'), legend: 'handed back' },
        { expr: rate('spillway_jobs_added_again_total'), legend: 'added again' },
        { expr: rate('spillway_jobs_cancelled_total'), legend: 'cancelled' },
      ],
    },
    {
      title: 'How verdicts come',
      description: 'By message, or only when asked for: then messages are lost.',
      unit: 'reqps',
      queries: [{ expr: rate('spillway_verdicts_total', 'source'), legend: '{{source}}' }],
    },
    {
      title: 'Memory',
      description:
        "Resident memory of each process. A worker needs its policy's memory for each slot on top of about 100 MB.",
      unit: 'bytes',
      queries: [{ expr: `process_resident_memory_bytes ${OURS}`, legend: '{{job}} {{instance}}' }],
    },
    {
      title: 'Held back, or hashing at gateways',
      description: 'paused: operators stopped the queue. fallback: gateways hash because no worker is there.',
      queries: [
        { expr: 'max(spillway_queue_paused)', legend: 'paused' },
        { expr: 'sum(spillway_fallback_active)', legend: 'fallback' },
      ],
    },
    {
      title: 'Policy of new hashes',
      description: 'Algorithm and cost, and how many workers have it. More than one line: a rollout, or a mistake.',
      type: 'table',
      unit: 'none',
      queries: [
        {
          expr: 'count by (algorithm, memory_kib, time, parallelism) (spillway_password_policy_info)',
          legend: 'workers',
        },
      ],
    },
    {
      title: 'Code that hashes',
      description:
        'The implementation of each algorithm that workers chose at their start. argon2 or bcrypt in place of @node-rs/…: slower.',
      type: 'table',
      unit: 'none',
      queries: [{ expr: 'count by (algorithm, engine) (spillway_hash_engine_info)', legend: 'workers' }],
    },
  ],
}
