// A way to PostgreSQL or Redis that a test can cut.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface Relay {
  /** The URL that leads through here. */
  url: string
  /** Ends every connection and refuses new ones. */
  cut(): Promise<void>
  /** Takes connections again, at the same port. */
  mend(): Promise<void>
  /** Keeps connections, takes new ones, and lets nothing through. */
  freeze(): void
  close(): Promise<void>
}

/** Opens a relay to where this URL leads. */
export async function openRelay(target: string): Promise<Relay> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let frozen = false
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from)
      from.on('data', (chunk) => frozen || to.write(chunk))
      from.on('error', () => {})
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the relay is bound to no port')
  const url = new URL(target)
  url.host = `127.0.0.1:${address.port}`
  async function cut(): Promise<void> {
    const closed = once(server, 'close')
    server.close()
    for (const socket of sockets) socket.destroy()
    await closed
  }
  return {
    url: url.href,
    cut,
    async mend() {
      frozen = false
      if (!server.listening) await once(server.listen(address.port, '127.0.0.1'), 'listening')
    },
    freeze() {
      frozen = true
    },
    async close() {
      if (server.listening) await cut()
    },
  }
}
