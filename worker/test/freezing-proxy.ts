// A TCP proxy that can freeze the connections it holds: nothing passes any more, and neither end is told.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface FreezingProxy {
  port: number
  /** Freezes every connection that is open now; those opened later pass. */
  freeze(): void
  /** Freezes every connection to come as well, so that whatever is behind it seems to hang. */
  freezeAll(): void
  close(): Promise<void>
}

export async function openFreezingProxy(target: { host: string; port: number }): Promise<FreezingProxy> {
  const sockets = new Set<Socket>()
  const pairs = new Set<[Socket, Socket]>()
  let frozen = false

  const server = createServer((near) => {
    const far = connect(target)
    const pair: [Socket, Socket] = [near, far]
    pairs.add(pair)
    for (const socket of pair) {
      sockets.add(socket)
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    }
    near.on('close', () => far.destroy())
    far.on('close', () => near.destroy())
    if (frozen) near.pause()
    else near.pipe(far).pipe(near)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy is bound to no port')

  function freeze(): void {
    for (const [near, far] of pairs) {
      near.unpipe(far).pause()
      far.unpipe(near).pause()
    }
    pairs.clear()
  }

  return {
    port: address.port,
    freeze,
    freezeAll() {
      frozen = true
      freeze()
    },
    async close() {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
}
