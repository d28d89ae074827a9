// A Redis under an attacker's control: a proxy that changes replies on their way to a client, whole replies at a time.
import { connect, createServer, type Socket } from 'node:net'
import { listening } from '@spillway/infra/processes/port'

/** Makes other replies of those that came together: none, more, in another order. */
export type Tamper = (replies: Buffer[]) => Buffer[]

export async function startHostileRedis(redisUrl: string) {
  const { hostname, port } = new URL(redisUrl)
  const sockets = new Set<Socket>()
  let tamper: Tamper | undefined
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    }
    client.pipe(upstream)
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
    let rest: Buffer = Buffer.alloc(0)
    upstream.on('data', (data) => {
      const { replies, left } = split(Buffer.concat([rest, data]))
      rest = left
      for (const reply of tamper?.(replies) ?? replies) client.write(reply)
    })
  })
  const url = new URL(redisUrl)
  url.host = `127.0.0.1:${await listening(server)}`
  return {
    url: url.href,
    /** Changes replies from now on; undefined for none. */
    tamper(by: Tamper | undefined): void {
      tamper = by
    },
    close(): void {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

function split(bytes: Buffer): { replies: Buffer[]; left: Buffer } {
  const replies: Buffer[] = []
  let start = 0
  for (let end = endOf(bytes, 0); end !== undefined; end = endOf(bytes, start)) {
    replies.push(bytes.subarray(start, end))
    start = end
  }
  return { replies, left: bytes.subarray(start) }
}

/** Where the reply that begins here ends (RESP 2 and 3); undefined when it is not whole. */
function endOf(bytes: Buffer, start: number): number | undefined {
  const line = bytes.indexOf('\r\n', start)
  if (line < 0) return undefined
  const kind = String.fromCharCode(bytes[start] ?? 0)
  const count = Number(bytes.toString('latin1', start + 1, line))
  let end = line + 2
  if ('$!='.includes(kind)) return count < 0 ? end : end + count + 2 <= bytes.length ? end + count + 2 : undefined
  if (!'*~>%|'.includes(kind)) return end
  for (let n = kind === '%' || kind === '|' ? 2 * count : count; n > 0; n -= 1) {
    const next = endOf(bytes, end)
    if (next === undefined) return undefined
    end = next
  }
  return end
}
