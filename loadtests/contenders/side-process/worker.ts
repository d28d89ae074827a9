// The side process: answers each task by its number, as many at a time as arrive.
import { type HashingTask, perform } from '../hashing.ts'

process.on('message', async ({ id, task }: { id: number; task: HashingTask }) => {
  const answer = await perform(task)
  process.send?.({ id, answer })
})
process.on('disconnect', () => process.exit(0))
