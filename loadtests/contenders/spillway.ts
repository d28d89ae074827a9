// Spillway as a contender: one gateway, and one worker on the same cores.

import { readMetric } from '@spillway/infra/rig/api-client'
import { deleteKeys } from '@spillway/infra/rig/namespace'
import { limitsOf, openSpillway } from '@spillway/infra/rig/spillway'
import { allOrNone } from '@spillway/infra/services/services'
import type { Running, StartOptions } from './contender.ts'

/** The states of a job that is not done. */
const queued = ['state="waiting"', 'state="deferred"', 'state="active"']

/** Counted as in production, and never reached: all callers come from one address. */
const UNREACHED = 1_000_000

/** @param options `slots`: hashes that the worker computes at a time */
export async function startSpillway({
  cores,
  services,
  slots,
}: Omit<StartOptions, 'algorithm'> & { slots: number }): Promise<Running> {
  const { databaseUrl, redisUrl } = services
  const spillway = openSpillway({
    databaseUrl,
    redisUrl,
    gatewayEnv: limitsOf(UNREACHED),
    // The engine to measure may be chosen by the environment.
    workerEnv: {
      HASH_ENGINE: process.env.HASH_ENGINE,
      WORKER_CONCURRENCY: String(slots),
      SPILLWAY_TEST_HASHES: 'true',
    },
    keepOnly: 'nothing',
  })
  const close = async () => {
    await spillway.close()
    await deleteKeys(redisUrl, spillway.queuePrefix)
  }
  try {
    await allOrNone([spillway.gateway({ cores }), spillway.worker({ cores })])
    const [gateway] = spillway.gateways
    const [worker] = spillway.workers
    if (gateway === undefined || worker === undefined) throw new Error('Spillway did not start')
    return {
      url: gateway.url,
      depth: () => readMetric(gateway.opsUrl, 'spillway_queue_jobs', ...queued),
      // The file it serves itself: a stat and a read.
      neighbourPath: '/docs/static/logo.svg',
      parts: [
        { role: 'api', pid: gateway.pid },
        { role: 'worker', pid: worker.pid },
      ],
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}
