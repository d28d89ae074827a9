// What workers can verify: as the workers of the queue publish it, or by the memory of a worker.
import { readQueue } from '@spillway/queue/capacity'
import { askOnNewConnection } from '@spillway/queue/redis/connect'
import { liveWorkers } from '@spillway/queue/wire/capacity'
import { hashingMemory } from '@spillway/worker/hashing/threads'

/** The chart's `worker.memory`. */
const USUAL_MIB = 256

interface WorkersOptions {
  redisUrl: string | undefined
  queuePrefix: string
  /** The limit of a worker, where no worker is to be asked. */
  memoryMib: number | undefined
}

/** The memory that every worker has for one hash, the times of the slowest, and a sentence for the summary. */
export async function workersOf({ redisUrl, queuePrefix, memoryMib }: WorkersOptions) {
  if (memoryMib !== undefined) return ofMemory(memoryMib, '.')
  const reading = redisUrl
    ? await askOnNewConnection(redisUrl, (redis) => readQueue(redis, queuePrefix, Date.now()))
    : undefined
  const workers = reading === undefined ? [] : [...liveWorkers(reading.workers, reading.at).values()]
  if (workers.length === 0)
    return ofMemory(USUAL_MIB, ', because no worker was found: set REDIS_URL, or say --worker-memory.')
  return {
    mostKib: Math.min(...workers.map(({ mostKib }) => mostKib)),
    unitCosts: {
      argon2Ms: Math.max(...workers.map(({ unitCosts }) => unitCosts.argon2Ms)),
      bcryptMs: Math.max(...workers.map(({ unitCosts }) => unitCosts.bcryptMs)),
    },
    checkedFor: `Checked for the workers of the queue (${workers.length}).`,
  }
}

function ofMemory(mib: number, why: string) {
  const { mostKib } = hashingMemory({ slots: 1, policyKib: 0, isShared: false, limitBytes: mib * 2 ** 20 })
  return { mostKib, unitCosts: undefined, checkedFor: `Checked for workers of ${mib} MiB${why}` }
}
