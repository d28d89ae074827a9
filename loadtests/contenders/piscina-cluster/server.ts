// Node's cluster: as many copies of the pooled server as there are processors, at least two, behind one port.
import cluster from 'node:cluster'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { createPool } from '../piscina/pool.ts'
import { announce, serve } from '../rival-server.ts'

if (cluster.isPrimary) {
  const copies = Array.from({ length: Math.max(2, availableParallelism()) }, () => cluster.fork())
  const addresses = await Promise.all(
    copies.map(async (copy) => {
      const [address] = await once(copy, 'listening')
      return address
    }),
  )
  const parts = copies.flatMap(({ process: { pid } }) => (pid === undefined ? [] : [{ role: 'api', pid }]))
  announce(`http://127.0.0.1:${addresses[0].port}`, parts)
} else {
  await serve(createPool(), process.env)
}
