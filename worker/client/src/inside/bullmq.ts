/** A hook into a private part of BullMQ 6, for workers. CONTRIBUTING lists it with its reason and its test; keys and scripts are in queue/. */
import type { Worker } from 'bullmq'

/**
 * BullMQ looks at its concurrency again when a job of its own ends. Slots that another queue's jobs left would idle until then, so it is
 * woken as its own resume() does. Where a version names that queue otherwise, they do idle.
 */
export function takeMoreJobs(worker: Worker): void {
  const ended: unknown = Reflect.get(worker, 'mainLoopQueue')
  if (ended instanceof Object && 'add' in ended && typeof ended.add === 'function') ended.add(Promise.resolve())
}
