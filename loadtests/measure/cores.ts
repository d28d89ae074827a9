// The cores of each process. The generator gets the first for itself, so that it takes nothing from the processes it measures.
import { availableParallelism } from 'node:os'
import { findPids } from '@spillway/infra/processes/process-table'
import { canPin } from '@spillway/infra/processes/processor-time'
import { startProcess } from '@spillway/infra/rig'
import { compiled, type Part, type Services } from '../contenders/contender.ts'

/** Every core there is. Counted before anything is pinned: afterwards this process only sees those it may use. */
export const allCores = Array.from({ length: availableParallelism() }, (_, n) => n)

/** The load generator's, unless all are together. */
export const generatorCores = [0]

/**
 * `apart`: generator and database on the first core, the contender and Redis on the others. `together`: everyone on all cores, for what is
 * counted with every process included.
 */
export type Placement = 'apart' | 'together'

/** The contender's cores; undefined where nothing can be pinned or there is only one. */
export const contenderCores = canPin && allCores.length > 1 ? allCores.slice(1) : undefined

/** Embedded servers, which have their cores too, by their ports; of PostgreSQL, the process that starts all others. */
export function serverProcesses({ databaseUrl, redisUrl }: Services): Part[] {
  const [postgres] = findPids('postgres', `-p ${new URL(databaseUrl).port}`)
  const [redis] = findPids('-server', `:${new URL(redisUrl).port}`)
  return [
    ...(postgres === undefined ? [] : [{ role: 'postgres', pid: postgres }]),
    ...(redis === undefined ? [] : [{ role: 'redis', pid: redis }]),
  ]
}

/** Begins at once, and ends with `close`. Linux alone. */
export function holdToShare(pids: readonly number[], share: number): { close(): Promise<void> } {
  const program = startProcess({
    entry: compiled('measure/processor-share-program'),
    args: [String(share), ...pids.map(String)],
  })
  return {
    /** Asked to end, so that nobody stays stopped. */
    async close() {
      await program.stop()
    },
  }
}
