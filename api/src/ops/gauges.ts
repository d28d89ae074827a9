/** Gauges of the queue, its workers and the gateway's own state, read at each scrape. */

import type { Metrics } from '@spillway/common/metrics'
import type { poolUse } from '@spillway/prisma'
import type { PasswordClient } from '@spillway/queue/client'
import type { QueueReporter } from '@spillway/queue/report'
import type { Audit } from '../audit/recorder.js'
import type { Post } from '../mail/post.js'
import type { OverloadGuard } from '../overload.js'

interface GatewayState {
  passwords: PasswordClient
  reporter: Pick<QueueReporter, 'read'>
  guard: Pick<OverloadGuard, 'inHand' | 'delayMs'>
  config: { loginWaitMs: number; ticketTtlMs: number }
  /** Undefined if no mail is sent. */
  post: Post | undefined
  poolUse(): ReturnType<typeof poolUse>
  audit: Pick<Audit, 'oldestMs'>
}

/** Adds the gauges. Those that need Redis have no value while it does not answer. */
export function exposeGatewayState(metrics: Metrics, state: GatewayState): void {
  const { passwords, reporter, guard, config, post, poolUse, audit } = state
  const { estimates } = passwords
  const report = () => reporter.read().catch(() => undefined)

  metrics.gauge('spillway_workers', 'Workers that published their capacity of late', () => estimates.load().workers)
  metrics.gauge('spillway_slots', 'Hashing threads of all live workers', () => estimates.load().slots)
  metrics.gauge(
    'spillway_capacity_jobs_per_second',
    'Jobs a second that all live workers could finish together',
    () => estimates.load().jobsPerSecond,
  )
  metrics.gauge(
    'spillway_predicted_wait_seconds',
    'Time until all jobs that wait now, and one more, would be answered; +Inf when no worker is alive, or the queue is paused',
    // The wait of open jobs would never show an overload: admission keeps it below a hold.
    () => estimates.predictedWaitMs() / 1_000,
  )
  metrics.gauge(
    'spillway_requests_in_hand',
    'Requests that this gateway works on itself; requests held for a worker do not count',
    () => guard.inHand(),
  )
  metrics.gauge(
    'spillway_gateway_delay_seconds',
    'The delay of the event loop, or of requests that this gateway works on; the longer one',
    () => guard.delayMs() / 1_000,
  )
  metrics.exposeRedis({ takesWrites: () => passwords.takesWrites(), eviction: passwords.eviction })
  metrics.gauge('spillway_line_serving', 'The number whose turn it is', () => estimates.line().serving)
  metrics.gauge('spillway_line_last', 'The last number that was given out', () => estimates.line().last)
  metrics.gauge(
    'spillway_database_connections',
    'Connections to PostgreSQL by use; waiting are queries without a connection yet',
    () => ({ ...poolUse() }),
    'state',
  )
  metrics.gauge(
    'spillway_audit_oldest_seconds',
    'How long the oldest audit event that is not yet written has waited',
    () => audit.oldestMs() / 1_000,
  )
  metrics.gauge(
    'spillway_queue_jobs',
    'Jobs in the queue, by state; finished jobs while they are kept',
    async () => (await report())?.jobs,
    'state',
  )
  metrics.gauge(
    'spillway_oldest_job_age_seconds',
    'How long the job that is next has waited, by state; 0 when no job waits',
    async () => {
      const ages = Object.entries((await report())?.oldestMs ?? {})
      return Object.fromEntries(ages.map(([state, ms]) => [state, ms / 1_000]))
    },
    'state',
  )
  metrics.gauge(
    'spillway_queue_paused',
    'Whether operators have paused a queue: passwords, or mail',
    async () => {
      const [passwordJobs, mails] = await Promise.all([report(), post?.state().catch(() => undefined)])
      return {
        ...(passwordJobs && { passwords: Number(passwordJobs.paused) }),
        ...(mails && { mail: Number(mails.isPaused) }),
      }
    },
    'queue',
  )
  metrics.gauge(
    'spillway_setting_seconds',
    'Settings that alerts compare with: login_wait and ticket_ttl',
    () => ({ login_wait: config.loginWaitMs / 1_000, ticket_ttl: config.ticketTtlMs / 1_000 }),
    'setting',
  )
}
