// A pool of worker threads with Piscina's defaults, and two threads at least. A thread awaits the
// hash, as in the origin, on libuv's threads, which a process shares. With CLUSTER, copies of this
// server share a port: as many as processors, at least two.
import cluster from 'node:cluster'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Piscina } from 'piscina'
import { byTasks, type Hashing, type HashingTask, perform } from '../hashing.ts'
import { announce, serve } from '../rival-server.ts'

if (process.env.CLUSTER === undefined) announce(await serve(createPool()))
else if (cluster.isWorker) await serve(createPool())
else {
  const copies = Array.from({ length: Math.max(2, availableParallelism()) }, () => cluster.fork())
  const addresses = await Promise.all(
    copies.map(async (copy) => {
      const [address] = await once(copy, 'listening')
      return address
    }),
  )
  announce(`http://127.0.0.1:${addresses[0].port}`)
}

function createPool(): Hashing {
  const pool = new Piscina<HashingTask, string | boolean>({
    filename: fileURLToPath(new URL('../hashing.js', import.meta.url)),
    name: perform.name,
    minThreads: 2,
  })
  return byTasks((task) => pool.run(task))
}
