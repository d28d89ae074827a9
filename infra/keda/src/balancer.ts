// A stand-in for a Service: connections to one port go to the ready pods in turn.
import { connect, createServer, type Socket } from 'node:net'
import type { PodRun } from './kubelet/run-pod.ts'

export interface Balancer {
  url: string
  close(): Promise<void>
}

/** Balances over the pods that are ready at each new connection; without any, the connection is refused. */
export async function startBalancer(pods: () => PodRun[], targetPort: number): Promise<Balancer> {
  const sockets = new Set<Socket>()
  let turn = 0
  const server = createServer((client) => {
    const ready = pods().filter(({ state }) => state.ready)
    const target = ready[turn++ % ready.length]
    if (target === undefined) return client.destroy()
    const upstream = connect(targetPort, target.state.podIp)
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => other.destroy())
      socket.on('close', () => sockets.delete(socket))
      socket.pipe(other)
    }
    return client
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the balancer is bound to no port')
  return {
    url: `http://127.0.0.1:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}
