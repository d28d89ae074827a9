// A program of its own: BullMQ with nothing around it. As `worker` it does jobs that do nothing, until it is ended; as `producer` it adds
// such jobs, of each caller one after the other, and prints how many a second were done.
import { setTimeout as sleep } from 'node:timers/promises'
import { Queue, QueueEvents, Worker } from 'bullmq'

const NAME = 'nothing'
/** For the completed jobs that callers may still ask for. */
const KEPT = 1_000
const WARM_UP_MS = 1_500

const [, , role, url = '', prefix = '', number = '', forMs = ''] = process.argv
const connection = { url, maxRetriesPerRequest: null }

if (role === 'worker') {
  new Worker(NAME, async () => null, { connection, prefix, concurrency: Number(number) })
} else {
  const queue = new Queue(NAME, { connection, prefix, defaultJobOptions: { removeOnComplete: KEPT } })
  const events = new QueueEvents(NAME, { connection, prefix })
  await events.waitUntilReady()
  let done = 0
  const call = async (): Promise<never> => {
    for (;;) {
      const job = await queue.add(NAME, {})
      await job.waitUntilFinished(events)
      done++
    }
  }
  for (let n = 0; n < Number(number); n++) void call()
  await sleep(WARM_UP_MS)
  const [doneBefore, startMs] = [done, performance.now()]
  await sleep(Number(forMs))
  console.log((1_000 * (done - doneBefore)) / (performance.now() - startMs))
  process.exit()
}
