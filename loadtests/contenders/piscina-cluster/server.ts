// Node's cluster: as many copies of the pooled server as there are processors, at least two, behind one port.
import cluster from 'node:cluster'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { createPool } from '../piscina/pool.ts'
import { serve } from '../rival-server.ts'

if (cluster.isPrimary) {
  const copies = Array.from({ length: Math.max(2, availableParallelism()) }, () => cluster.fork())
  process.once('SIGTERM', () => {
    for (const copy of copies) copy.kill('SIGTERM')
    cluster.on('exit', () => {
      if (Object.keys(cluster.workers ?? {}).length === 0) process.exit(0)
    })
  })
  const addresses = await Promise.all(
    copies.map(async (copy) => {
      const [address] = await once(copy, 'listening')
      return address
    }),
  )
  const parts = copies.map((copy) => ({ role: 'api', pid: copy.process.pid }))
  console.log(JSON.stringify({ msg: 'listening', url: `http://127.0.0.1:${addresses[0].port}`, parts }))
} else {
  await serve(createPool(), process.env)
}
