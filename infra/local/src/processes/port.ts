import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

/** The error code of listening there, such as EADDRINUSE; undefined if it is possible. */
export async function whyNotListen(port: number, host: string): Promise<string | undefined> {
  const tried = await listen(port, host)
  return 'code' in tried ? tried.code : undefined
}

/**
 * A free port of the loopback interface, the preferred one if possible. Another process may take it
 * before it is used: a server that can listen on port 0 should do that instead.
 */
export async function freePort(preferred = 0): Promise<number> {
  const first = await listen(preferred, '127.0.0.1')
  const found = 'port' in first ? first : await listen(0, '127.0.0.1')
  if ('port' in found) return found.port
  throw new Error(`no port of 127.0.0.1 can be listened on (${found.code})`)
}

/** Lets a server listen on a free port of this host. Resolves with the port, or rejects. */
export async function listening(server: Server, host = '127.0.0.1'): Promise<number> {
  await once(server.listen(0, host), 'listening')
  return portOf(server)
}

/**
 * Starts a server on a free port, the preferred one if possible. If the start fails and the port is
 * taken by then, for instance by a concurrent start, it is retried once on another port.
 */
export async function onFreePort<T>(preferred: number, start: (port: number) => Promise<T>): Promise<T> {
  const port = await freePort(preferred)
  try {
    return await start(port)
  } catch (error) {
    if ((await whyNotListen(port, '127.0.0.1')) === undefined) throw error
    return start(await freePort())
  }
}

async function listen(port: number, host: string): Promise<{ port: number } | { code: string }> {
  const server = createServer().listen({ port, host, exclusive: true })
  try {
    await once(server, 'listening')
  } catch (error) {
    return { code: error instanceof Error && 'code' in error ? String(error.code) : String(error) }
  }
  const free = portOf(server)
  server.close()
  await once(server, 'close')
  return { port: free }
}

function portOf(server: Server): number {
  const address = server.address()
  if (typeof address === 'object' && address !== null) return address.port
  throw new Error('the server is bound to no port')
}
