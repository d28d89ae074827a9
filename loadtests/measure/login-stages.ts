// The time of a login by stage, by the counters of gateway and worker.
import { type HistogramSum, readHistogram } from '@spillway/local/services/prometheus'
import type { SpillwayRunning } from '../contenders/spillway.ts'

/** Milliseconds of a login, on average. Each of the first two includes what follows it. */
export interface StageTimes {
  /** From the head of the request to the end of the answer. */
  requestMs: number
  /** From handing the job over to having its verdict. */
  heldMs: number
  queueWaitMs: number
  hashMs: number
}

type StageSums = Record<keyof StageTimes, HistogramSum>

/** Reads the counters of one gateway and one worker. */
export async function readStages({ gatewayOps, workerOps }: SpillwayRunning): Promise<StageSums> {
  const [gateway = ''] = gatewayOps
  const [worker = ''] = workerOps
  const [requestMs, heldMs, queueWaitMs, hashMs] = await Promise.all([
    readHistogram(gateway, 'spillway_http_request_duration_seconds', 'route="/v1/login"'),
    readHistogram(gateway, 'spillway_wait_seconds', 'operation="login"'),
    readHistogram(worker, 'spillway_queue_wait_seconds', 'job="verify"'),
    readHistogram(worker, 'spillway_service_seconds', 'job="verify"'),
  ])
  return { requestMs, heldMs, queueWaitMs, hashMs }
}

/** The averages between two readings. */
export function stageTimes(before: StageSums, after: StageSums): StageTimes {
  return {
    requestMs: meanMs(before.requestMs, after.requestMs),
    heldMs: meanMs(before.heldMs, after.heldMs),
    queueWaitMs: meanMs(before.queueWaitMs, after.queueWaitMs),
    hashMs: meanMs(before.hashMs, after.hashMs),
  }
}

function meanMs(before: HistogramSum, after: HistogramSum): number {
  const count = after.count - before.count
  return count === 0 ? 0 : (1_000 * (after.sum - before.sum)) / count
}
