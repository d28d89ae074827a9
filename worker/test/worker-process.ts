// The worker as it runs in production: compiled, in a process of its own, with doubles of stored hashes where it is started here.
import { type Member, startMember, withDoubles } from '@spillway/infra/harness/spillway'
import { workerProgram } from '@spillway/infra/start/member'
import { workerEnvironment } from './parts.ts'
import type { Space } from './space.ts'

export const entry = 'worker/dist/main.cjs'

/** Starts a worker of two slots and waits until it is ready; it is killed with the space. */
export async function startedWorkerProcess(space: Space, env: Record<string, string> = {}): Promise<Member> {
  const worker = await startMember(workerProgram, {
    ...withDoubles,
    env: { ...workerEnvironment(space), WORKER_CONCURRENCY: '2', ...env },
  })
  space.closing(() => worker.close())
  return worker
}
