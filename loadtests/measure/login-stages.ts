// The time of a login by stage, by the counters of gateway and worker.
import { readMetric } from '@spillway/local/rig/api-client'
import type { SpillwayRunning } from '../contenders/spillway.ts'

/**
 * Reads the counters of one gateway and one worker; the returned function gives the averages since then, in milliseconds of a login: from
 * the head of the request to the end of the answer, from handing the job over to having its verdict, and in the last two stages alone.
 */
export async function watchStages({ gatewayOps, workerOps }: SpillwayRunning) {
  const [gateway = ''] = gatewayOps
  const [worker = ''] = workerOps
  const stages = [
    [gateway, 'spillway_http_request_duration_seconds', 'route="/v1/login"'],
    [gateway, 'spillway_wait_seconds', 'operation="login"'],
    [worker, 'spillway_queue_wait_seconds', 'job="verify"'],
    [worker, 'spillway_service_seconds', 'job="verify"'],
  ] as const
  const read = () =>
    Promise.all(
      stages.map(async ([opsUrl, name, label]) => ({
        sum: await readMetric(opsUrl, `${name}_sum`, label),
        count: await readMetric(opsUrl, `${name}_count`, label),
      })),
    )
  const before = await read()
  return async () => {
    const [requestMs = 0, heldMs = 0, queueWaitMs = 0, hashMs = 0] = (await read()).map((now, stage) => {
      const count = now.count - (before[stage]?.count ?? 0)
      return count === 0 ? 0 : (1_000 * (now.sum - (before[stage]?.sum ?? 0))) / count
    })
    return { requestMs, heldMs, queueWaitMs, hashMs }
  }
}
