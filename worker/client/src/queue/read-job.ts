/** Reading a job as BullMQ does, from a Redis that anyone may have written to. */
import type { Job, Queue } from 'bullmq'

/** The job, undefined where there is none, or `malformed` where BullMQ cannot read what there is. Throws when Redis does not answer. */
export async function readJob(queue: Queue, id: string): Promise<Job | 'malformed' | undefined> {
  try {
    return await queue.getJob(id)
  } catch (error) {
    // What was to be JSON does not parse, or parses to something else, or the key is no hash. Any other error says nothing of the job.
    const isOfContents = error instanceof SyntaxError || error instanceof TypeError
    if (isOfContents || (error instanceof Error && error.message.startsWith('WRONGTYPE'))) return 'malformed'
    throw error
  }
}
