// The worker as it runs in production: compiled, in a process of its own.
import { startProcess, type TestProcess } from '@spillway/local/testing'
import { workerEnvironment } from './parts.ts'
import type { Space } from './space.ts'

export const entry = 'worker/dist/main.cjs'

export interface WorkerProcess extends TestProcess {
  opsUrl: string
}

/** Starts a worker of two slots and waits until it is ready; it is killed with the space if it still runs then. */
export async function startedWorkerProcess(space: Space, env: Record<string, string> = {}): Promise<WorkerProcess> {
  const worker = startProcess({ entry, env: { ...workerEnvironment(space), WORKER_CONCURRENCY: '2', ...env } })
  space.closing(() => worker.close())
  const ready = await worker.waitForLog(({ msg }) => msg === 'worker ready', 30_000)
  return { ...worker, opsUrl: String(ready.opsUrl) }
}
