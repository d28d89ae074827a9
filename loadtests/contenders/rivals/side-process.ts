// One process beside the server, this program again, does all hashing. Tasks on the IPC channel
// have numbers, by which they are answered.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { byTasks, type HashingTask, perform } from '../hashing.ts'

const program = fileURLToPath(import.meta.url)

if (process.argv[2] === 'hash') {
  process.on('message', async ({ id, task }: { id: number; task: HashingTask }) => {
    const answer = await perform(task)
    process.send?.({ id, answer })
  })
  process.on('disconnect', () => process.exit(0))
} else {
  const { announce, serve } = await import('../rival-server.ts')
  const child = fork(program, ['hash'])
  const waiting = new Map<number, (answer: unknown) => void>()
  let lastId = 0
  child.on('message', ({ id, answer }: { id: number; answer: unknown }) => {
    waiting.get(id)?.(answer)
    waiting.delete(id)
  })
  const hashing = byTasks((task) => {
    const id = ++lastId
    return new Promise((resolve) => {
      waiting.set(id, resolve)
      child.send({ id, task })
    })
  })
  const url = await serve(hashing, process.env)
  announce(url, child.pid === undefined ? [] : [{ role: 'hasher', pid: child.pid }])
}
