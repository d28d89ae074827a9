// The row "Who is slow?" Where the time goes: hashing, the queue, the routes, the event loop, the database, the processors.
import type { Row } from '../panel.ts'
import { OURS, quantile, rate } from '../promql.ts'

export const whoIsSlow: Row = {
  title: 'Who is slow?',
  panels: [
    {
      title: 'Hashing',
      description: 'Time of the hashing alone, p95 by algorithm. Rising with the load: more slots than processors.',
      unit: 's',
      queries: [
        {
          expr: quantile(0.95, 'spillway_service_seconds', '', 'algorithm'),
          legend: '{{algorithm}}',
        },
      ],
    },
    {
      title: 'Where the time of a job goes',
      description: 'Means, stacked: what is not hashing is waiting.',
      unit: 's',
      stacked: true,
      queries: [
        {
          expr: `${rate('spillway_queue_wait_seconds_sum')} / ${rate('spillway_queue_wait_seconds_count')}`,
          legend: 'in the queue',
        },
        {
          expr: `${rate('spillway_service_seconds_sum')} / ${rate('spillway_service_seconds_count')}`,
          legend: 'hashing',
        },
      ],
    },
    {
      title: 'Routes, p95',
      description: 'Those that hash nothing must stay in milliseconds whatever the queue does.',
      unit: 's',
      queries: [{ expr: quantile(0.95, 'spillway_http_request_duration_seconds', '', 'route'), legend: '{{route}}' }],
    },
    {
      title: 'Event loop lag, p99',
      description:
        'Of every process, with the 50 ms between two looks; nothing here blocks the loop, so worry from 150 ms.',
      unit: 's',
      thresholds: { warn: 0.15, bad: 0.5 },
      queries: [{ expr: `nodejs_eventloop_lag_p99_seconds ${OURS}`, legend: '{{job}} {{instance}}' }],
    },
    {
      title: 'Requests at gateways',
      description:
        'in hand: what each gateway works on itself, 100 or what it answers in half a second. delay: for how many seconds others wait in line.',
      queries: [
        { expr: 'spillway_requests_in_hand', legend: '{{instance}} in hand' },
        { expr: 'spillway_gateway_delay_seconds', legend: '{{instance}} delay' },
      ],
    },
    {
      title: 'Database connections',
      description: 'waiting are queries without a connection: worry when there are any for minutes.',
      queries: [{ expr: 'sum by (state) (spillway_database_connections)', legend: '{{state}}' }],
    },
    {
      title: 'Processor time',
      description: 'Cores in use by each process. A worker should come near its limit in a spike, a gateway never.',
      queries: [{ expr: `rate(process_cpu_seconds_total[$__rate_interval]) ${OURS}`, legend: '{{job}} {{instance}}' }],
    },
  ],
}
