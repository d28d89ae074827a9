// A TCP proxy in front of a server, which can do to its connections what networks do.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

export interface TcpProxy {
  port: number
  /** Every byte, in both directions, arrives this much later. */
  delayMs: number
  /** Resets all connections there are; new ones are let through. */
  cut(): void
  /**
   * Whatever is sent over the connections there are is lost, and nobody is told, as behind a firewall that forgot them. New
   * ones are let through.
   */
  blackhole(): void
  /** Refuses new connections, and cuts the others; until `accept`. */
  refuse(): void
  accept(): void
  close(): Promise<void>
}

interface Link {
  lost: boolean
}

/** Starts a proxy on a free port of the loopback interface. */
export async function startProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  const links = new Map<Socket, Link>()
  let refusing = false
  const server = createServer((client) => {
    if (refusing) return void client.resetAndDestroy()
    const upstream = connect(target)
    const link = { lost: false }
    forward(client, upstream, link)
    forward(upstream, client, link)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy is bound to no port')

  function forward(from: Socket, to: Socket, link: Link): void {
    links.set(from, link)
    from.setNoDelay(true)
    let last: Promise<unknown> = Promise.resolve()
    let delayed = 0
    from.on('data', (bytes) => {
      if (link.lost) return
      if (proxy.delayMs === 0 && delayed === 0) return void to.write(bytes)
      // One after the other, so that nothing overtakes.
      const dueMs = performance.now() + proxy.delayMs
      delayed++
      last = last.then(async () => {
        await sleep(Math.max(dueMs - performance.now(), 0))
        if (!link.lost) to.write(bytes)
        delayed--
      })
    })
    from.on('error', () => undefined)
    from.on('close', () => {
      links.delete(from)
      // Behind a blackhole the other end hears nothing of this either.
      if (!link.lost) to.destroy()
    })
  }

  const proxy: TcpProxy = {
    port: address.port,
    delayMs: 0,
    cut() {
      for (const socket of links.keys()) socket.resetAndDestroy()
    },
    blackhole() {
      for (const link of links.values()) link.lost = true
    },
    refuse() {
      refusing = true
      proxy.cut()
    },
    accept() {
      refusing = false
    },
    async close() {
      proxy.cut()
      server.close()
      await once(server, 'close')
    },
  }
  return proxy
}
