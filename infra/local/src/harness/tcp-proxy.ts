// A TCP proxy in front of a server, which does to connections what networks do.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { listening } from '../processes/port.ts'

const TRICKLE_INTERVAL_MS = 200

export interface Address {
  host: string
  port: number
}

export type TcpProxy = Awaited<ReturnType<typeof startProxy>>

interface Link {
  client: Socket
  upstream: Socket
  frozen: boolean
}

/**
 * @param url where it leads: `redis://`, `postgresql://` or any other with a port
 * @param target the server of each new connection, in place of the URL's; undefined ends it
 */
export async function startProxy(url: string, target: () => Address | undefined = () => addressOf(url)) {
  const links = new Set<Link>()
  let state: 'open' | 'refusing' | 'frozen' = 'open'
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const address = state === 'refusing' ? undefined : target()
    if (address === undefined) return void client.destroy()
    const link: Link = { client, upstream: connect({ ...address, allowHalfOpen: true }), frozen: false }
    links.add(link)
    forward(link, client, link.upstream)
    forward(link, link.upstream, client)
    if (state === 'frozen') freezeLink(link)
  })
  const port = await listening(server)

  function forward(link: Link, from: Socket, to: Socket): void {
    from.setNoDelay(true)
    let last: Promise<unknown> = Promise.resolve()
    let delayed = 0
    from.on('data', (bytes) => {
      if (proxy.delayMs === 0 && delayed === 0) return void to.write(bytes)
      // One after the other, so that nothing overtakes.
      const dueMs = performance.now() + proxy.delayMs
      const leftMs = () => dueMs - performance.now()
      delayed++
      last = last.then(async () => {
        // In a loop, because a timer may be a millisecond early.
        for (let ms = leftMs(); ms > 0; ms = leftMs()) await sleep(ms)
        to.write(bytes)
        delayed--
      })
    })
    const pass = () => void last.then(() => link.frozen || passEnd(from, to))
    from.on('end', pass)
    from.on('error', () => undefined)
    from.on('close', () => (to.destroyed ? links.delete(link) : pass()))
  }

  const through = new URL(url)
  through.hostname = '127.0.0.1'
  through.port = String(port)
  const proxy = {
    url: through.href,
    /** In both directions. */
    delayMs: 0,
    /** Ends the connections there are; new ones pass. */
    cut(): void {
      for (const { client, upstream } of links) {
        client.destroy()
        upstream.destroy()
      }
    },
    /** Ends the connections there are and every new one, until `restore`. */
    refuse(): void {
      state = 'refusing'
      proxy.cut()
    },
    /** Lets nothing through on any connection, and tells neither end, until `restore`. */
    freeze(): void {
      state = 'frozen'
      for (const link of links) freezeLink(link)
    },
    /** On the connections there are, lets requests through and no replies, until `restore`. */
    freezeReplies(): void {
      for (const { upstream } of links) upstream.pause()
    },
    /** Freezes them, and sends each client of Redis an endless reply: no socket times out. */
    trickleReplies(): void {
      for (const link of links) {
        freezeLink(link)
        trickle(link.client)
      }
    },
    /** Accepts connections again, and delivers what was frozen. */
    restore(): void {
      state = 'open'
      for (const link of links) restoreLink(link)
    },
    /** As host:port, where the server sees connections come from. */
    addresses: (): string[] => [...links].map(({ upstream }) => `${upstream.localAddress}:${upstream.localPort}`),
    async close(): Promise<void> {
      server.close()
      proxy.cut()
      await once(server, 'close')
    },
  }
  return proxy
}

function freezeLink(link: Link): void {
  link.frozen = true
  link.client.pause()
  link.upstream.pause()
}

function trickle(client: Socket): void {
  client.write('$1000000\r\n')
  const timer = setInterval(() => client.write('x'), TRICKLE_INTERVAL_MS)
  client.on('close', () => clearInterval(timer))
}

function restoreLink(link: Link): void {
  link.frozen = false
  for (const [from, to] of [
    [link.client, link.upstream],
    [link.upstream, link.client],
  ] as const) {
    from.resume()
    passEnd(from, to)
  }
}

/** Passes an end of sending, or of the connection, to the other side; also of a paused socket. */
function passEnd(from: Socket, to: Socket): void {
  if (from.readableEnded) to.end()
  if (from.destroyed) to.destroySoon()
}

const defaultPorts: Record<string, number> = { 'redis:': 6_379, 'postgres:': 5_432, 'postgresql:': 5_432 }

function addressOf(url: string): Address {
  const { protocol, hostname, port } = new URL(url)
  return { host: hostname, port: Number(port) || (defaultPorts[protocol] ?? 0) }
}
