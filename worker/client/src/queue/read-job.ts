/** Reads a job through BullMQ from a Redis server that is not trusted. */
import type { Job, Queue } from 'bullmq'

/** The job; undefined when there is none; `malformed` when BullMQ cannot parse it. Throws when Redis does not answer. */
export async function readJob(queue: Queue, id: string): Promise<Job | 'malformed' | undefined> {
  try {
    return await queue.getJob(id)
  } catch (error) {
    // Invalid JSON, JSON of another type, or a key that is no hash. Other errors are not caused by the job.
    const isOfContents = error instanceof SyntaxError || error instanceof TypeError
    if (isOfContents || (error instanceof Error && error.message.startsWith('WRONGTYPE'))) return 'malformed'
    throw error
  }
}
