/** Hooks into private parts of BullMQ 6; CONTRIBUTING has their reasons and tests. */
import type { Worker } from 'bullmq'

/**
 * BullMQ looks at its concurrency again when a job of its own ends: slots that another queue's jobs
 * left would idle until then. Woken as by its own resume(), which does nothing unless the worker is
 * paused. Upstream: the setter of `concurrency` could wake the loop.
 */
export function takeMoreJobs(worker: Worker): void {
  const ended: unknown = Reflect.get(worker, 'mainLoopQueue')
  if (ended instanceof Object && 'add' in ended && typeof ended.add === 'function') ended.add(Promise.resolve())
}

interface LockManager {
  trackedJobs: { size: number }
  trackJob(...job: unknown[]): unknown
  startLockExtenderTimer(): void
}

function isLockManager(value: unknown): value is LockManager {
  return (
    value instanceof Object &&
    ['trackJob', 'startLockExtenderTimer'].every((name) => typeof Reflect.get(value, name) === 'function') &&
    Reflect.get(value, 'trackedJobs') instanceof Map
  )
}

/**
 * BullMQ looks for locks to renew several times a second, a quarter of an idle worker's work.
 * Without a job in hand it stops looking. Its option `skipLockRenewal` would renew none. To be
 * called before the worker runs. Upstream: the timer could start with the first tracked job.
 */
export function renewLocksOfJobsAlone(worker: Worker): void {
  const locks: unknown = Reflect.get(worker, 'lockManager')
  if (!isLockManager(locks)) return
  const { trackJob, startLockExtenderTimer } = locks
  locks.startLockExtenderTimer = () => {
    if (locks.trackedJobs.size > 0) startLockExtenderTimer.call(locks)
  }
  locks.trackJob = (...job) => {
    const isFirst = locks.trackedJobs.size === 0
    const tracked = trackJob.apply(locks, job)
    if (isFirst) locks.startLockExtenderTimer()
    return tracked
  }
}
