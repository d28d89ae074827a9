// The way to Redis, made of a socket that can be cut: what is behind it is real, and so is its loss.

import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Space } from './space.ts'

export interface Relay {
  /** Redis, by way of this relay. */
  redisUrl: string
  /** Ends every connection and takes no new one. */
  cut(): void
  /** Keeps connections open and lets nothing through any more. */
  hold(): void
  /** Lets commands of open connections through, and no answers. */
  holdAnswers(): void
  /** Lets everything through again. */
  mend(): void
  /** The addresses that Redis sees its connections come from. */
  addresses(): string[]
}

export async function startRelay(space: Space): Promise<Relay> {
  const target = new URL(space.redisUrl)
  const sockets = new Set<Socket>()
  const ways = new Set<Socket>()
  let isCut = false
  let isHeld = false
  const server = createServer((near) => {
    if (isCut) return near.destroy()
    const far = connect(Number(target.port), target.hostname)
    ways.add(far)
    far.on('close', () => ways.delete(far))
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
      from.on('error', () => to.destroy())
      from.pipe(to)
      if (isHeld) from.pause()
    }
    return undefined
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the relay listens nowhere')
  const url = new URL(space.redisUrl)
  url.hostname = '127.0.0.1'
  url.port = String(address.port)
  const cut = (): void => {
    isCut = true
    for (const socket of sockets) socket.destroy()
  }
  space.closing(async () => {
    cut()
    server.close()
  })
  return {
    redisUrl: url.href,
    cut,
    hold() {
      isHeld = true
      for (const socket of sockets) socket.pause()
    },
    holdAnswers() {
      for (const far of ways) far.pause()
    },
    mend() {
      isCut = false
      isHeld = false
      for (const socket of sockets) socket.resume()
    },
    addresses: () => [...ways].map((far) => `${far.localAddress}:${far.localPort}`),
  }
}
