// The dashboard: each row is a question, and its panels are the answer. Gauges of the queue are the same at every gateway, so
// the highest counts; counters are added up.
import type { Row } from './panel.ts'

const LOGIN = 'route="/v1/login"'
/** What starts a hash: the requests whose rate the workers must keep up with. */
const HASHING = 'route=~"/v1/login|/v1/users|/v1/me/password"'

/** Of all that is scraped, the gateways and workers: names of jobs differ from one Prometheus to the next. */
const OURS = 'and on (job, instance) spillway_redis_connected'

const rate = (counter: string, by = '') => `sum ${by && `by (${by}) `}(rate(${counter}[$__rate_interval]))`
const quantile = (q: number, histogram: string, labels = '', by = '') =>
  `histogram_quantile(${q}, sum by (le${by && `, ${by}`}) (rate(${histogram}_bucket{${labels}}[$__rate_interval])))`
const quantiles = (histogram: string, labels = '') =>
  [0.5, 0.95, 0.99].map((q) => ({ expr: quantile(q, histogram, labels), legend: `p${q * 100}` }))

export const rows: Row[] = [
  {
    title: 'Are logins fine?',
    panels: [
      {
        title: 'Logins that failed here',
        description: 'Share of logins answered with 5xx: refused as busy, or broken. The objective allows 0.5 %.',
        type: 'stat',
        unit: 'percentunit',
        width: 4,
        thresholds: { warn: 0.005, bad: 0.05 },
        queries: [
          {
            expr: `(${rate(`spillway_http_requests_total{${LOGIN},status=~"5.."}`)} or vector(0)) / ${rate(`spillway_http_requests_total{${LOGIN}}`)}`,
            legend: 'failed',
          },
        ],
      },
      {
        title: 'Error budget left',
        description: 'Of the 0.5 % that may fail, over the time shown. Below 0 the objective is missed.',
        type: 'stat',
        unit: 'percentunit',
        width: 4,
        floor: { warn: 0.5, bad: 0 },
        queries: [
          {
            expr: `1 - (sum(increase(spillway_http_requests_total{${LOGIN},status=~"5.."}[$__range])) or vector(0)) / sum(increase(spillway_http_requests_total{${LOGIN}}[$__range])) / 0.005`,
            legend: 'left',
          },
        ],
      },
      {
        title: 'Logins by outcome',
        description:
          'ok and ticket are good; invalid_credentials is the users or an attack; busy and unavailable are ours.',
        unit: 'reqps',
        stacked: true,
        queries: [{ expr: rate(`spillway_http_requests_total{${LOGIN}}`, 'outcome'), legend: '{{outcome}}' }],
      },
      {
        title: 'Time to an answer',
        description:
          'From the head of a login request to the end of its answer, tickets included. Worry when p95 passes 2 s.',
        unit: 's',
        thresholds: { warn: 2, bad: 8 },
        queries: quantiles('spillway_http_request_duration_seconds', LOGIN),
      },
      {
        title: 'Tickets',
        description:
          'Given out instead of an answer, and what redeeming them came to. Expired ones are logins that were lost.',
        unit: 'reqps',
        width: 12,
        queries: [{ expr: rate('spillway_tickets_total', 'event'), legend: '{{event}}' }],
      },
      {
        title: 'How waits end',
        description: 'Requests that were held for a verdict: answered, given a ticket, left by the client, or failed.',
        unit: 'reqps',
        width: 12,
        queries: [{ expr: rate('spillway_wait_seconds_count', 'outcome'), legend: '{{outcome}}' }],
      },
    ],
  },
  {
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
        description:
          'Age of the job that is next. A waiting one should be taken within the 8 s that a request is held.',
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
        title: 'A login now would take',
        description: 'What admission predicts: depth by capacity. No line means no worker (+Inf).',
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
  },
  {
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
        description: 'Of every process; nothing here blocks the loop, so worry from 100 ms.',
        unit: 's',
        thresholds: { warn: 0.1, bad: 0.5 },
        queries: [{ expr: `nodejs_eventloop_lag_p99_seconds ${OURS}`, legend: '{{job}} {{instance}}' }],
      },
      {
        title: 'Database connections',
        description: 'waiting are queries without a connection: worry when there are any for minutes.',
        queries: [{ expr: 'sum by (state) (spillway_database_connections)', legend: '{{state}}' }],
      },
      {
        title: 'Processor time',
        description: 'Cores in use by each process. A worker should come near its limit in a spike, a gateway never.',
        queries: [
          { expr: `rate(process_cpu_seconds_total[$__rate_interval]) ${OURS}`, legend: '{{job}} {{instance}}' },
        ],
      },
    ],
  },
  {
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
  },
  {
    title: 'Is anyone attacking?',
    panels: [
      {
        title: 'Refusals by reason',
        description: 'Limits, wrong passwords, unknown accounts, reused refresh tokens.',
        unit: 'reqps',
        queries: [{ expr: rate('spillway_refused_total', 'reason'), legend: '{{reason}}' }],
      },
      {
        title: 'Logins with a wrong password or no account',
        description: 'Share of the logins that were verified. People mistype; from half on it is programs.',
        unit: 'percentunit',
        thresholds: { warn: 0.3, bad: 0.5 },
        queries: [
          {
            expr: `(${rate(`spillway_http_requests_total{${LOGIN},outcome="invalid_credentials"}`)} or vector(0)) / ${rate(`spillway_http_requests_total{${LOGIN},outcome=~"ok|invalid_credentials"}`)}`,
            legend: 'wrong',
          },
          {
            expr: `${rate('spillway_refused_total{reason="unknown_account"}')} / clamp_min(${rate('spillway_refused_total{reason=~"unknown_account|wrong_password"}')}, 0.001)`,
            legend: 'of these, unknown accounts',
          },
        ],
      },
      {
        title: 'Seals that did not open',
        description: 'verdict and request: someone writes to Redis, or keys differ. ticket: someone makes tickets up.',
        unit: 'reqps',
        queries: [{ expr: rate('spillway_seal_failures_total', 'purpose'), legend: '{{purpose}}' }],
      },
      {
        title: 'Guesses at the ops port',
        description: 'Wrong user names or passwords of operators.',
        unit: 'reqps',
        width: 12,
        queries: [{ expr: rate('spillway_operator_login_failures_total', 'instance'), legend: '{{instance}}' }],
      },
      {
        title: 'Algorithms at login',
        description: 'Hashes verified or made, by algorithm, and old ones replaced: how far the migration is.',
        unit: 'reqps',
        width: 12,
        queries: [
          { expr: rate('spillway_service_seconds_count', 'algorithm'), legend: '{{algorithm}}' },
          { expr: rate('spillway_rehashes_total'), legend: 'replaced' },
        ],
      },
    ],
  },
  {
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
          'stalled: taken over from a worker that vanished. handed back: by one that stopped. added again: after a reconnect. cancelled: the client had gone.',
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
        description:
          'Algorithm, cost and implementation, and how many workers have it. More than one line: a rollout, or a mistake.',
        type: 'table',
        unit: 'none',
        queries: [
          {
            expr: 'count by (algorithm, memory_kib, time, parallelism, engine) (spillway_password_policy_info)',
            legend: 'workers',
          },
        ],
      },
    ],
  },
]
