// The cores of each process. The generator gets the first for itself, so that it takes nothing from the processes it measures.
import { availableParallelism } from 'node:os'
import { canPin } from '@spillway/infra/processes/processor-time'

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
