// What Redis shows of the queue: its lists, and the stream of what happened to each job.
import { until } from '@spillway/infra/processes/until'
import type { System } from './system.ts'

export interface QueueWatch {
  /** Resolves when this many jobs wait, open or ticketed, and are being hashed. */
  settled(waiting: number, active: number): Promise<void>
  /** The ids of all jobs that were ever added, in order. */
  added(): Promise<string[]>
  /** The job that a worker took first after this one was added. */
  takenFirstAfter(jobId: string): Promise<string | undefined>
  /** Whether a job is still there, waiting or finished. */
  holds(jobId: string): Promise<boolean>
}

export function watchQueue({ redis, namespace }: Pick<System, 'redis' | 'namespace'>): QueueWatch {
  const key = (name: string) => `${namespace.queuePrefix}:passwords:${name}`
  async function happened(): Promise<{ event: string; jobId: string }[]> {
    const entries = await redis.xrange(key('events'), '-', '+')
    return entries.map(([, fields]) => {
      const field = (name: string) => fields[fields.indexOf(name) + 1] ?? ''
      return { event: field('event'), jobId: field('jobId') }
    })
  }
  return {
    async settled(waiting, active) {
      const what = `a queue of ${waiting} waiting and ${active} active jobs`
      await until(
        async () => {
          const [open, ticketed, taken] = await Promise.all([
            redis.llen(key('wait')),
            redis.zcard(key('prioritized')),
            redis.llen(key('active')),
          ])
          if (open + ticketed === waiting && taken === active) return true
          throw new Error(`${open} open, ${ticketed} ticketed and ${taken} active`)
        },
        { what },
      )
    },
    async added() {
      return (await happened()).filter(({ event }) => event === 'added').map(({ jobId }) => jobId)
    },
    async takenFirstAfter(jobId) {
      const all = await happened()
      const since = all.findIndex((each) => each.event === 'added' && each.jobId === jobId)
      return all.slice(since).find(({ event }) => event === 'active')?.jobId
    },
    holds: async (jobId) => (await redis.exists(key(jobId))) === 1,
  }
}
