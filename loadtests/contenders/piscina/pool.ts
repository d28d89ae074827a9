// A Piscina pool in this process: Piscina's own defaults, but for the two threads its users keep at least. A thread awaits the hash, as in
// the origin: it hands it on to libuv's threads, which all threads of a process share.
import { fileURLToPath } from 'node:url'
import { Piscina } from 'piscina'
import { byTasks, type Hashing, type HashingTask, perform } from '../hashing.ts'

export function createPool(): Hashing {
  const pool = new Piscina<HashingTask, string | boolean>({
    filename: fileURLToPath(new URL('../hashing.js', import.meta.url)),
    name: perform.name,
    minThreads: 2,
  })
  return byTasks((task) => pool.run(task))
}
