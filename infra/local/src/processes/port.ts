import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

/** The error code of listening there, such as EADDRINUSE; undefined if it is possible. */
export async function whyNotListen(port: number, host: string): Promise<string | undefined> {
  const tried = await listen(port, host)
  return 'code' in tried ? tried.code : undefined
}

/** The preferred one if possible. A server that can listen on port 0 should do that instead. */
export async function freePort(preferred = 0): Promise<number> {
  const first = await listen(preferred, '127.0.0.1')
  const found = 'port' in first ? first : await listen(0, '127.0.0.1')
  if ('port' in found) return found.port
  throw new Error(`no port of 127.0.0.1 can be listened on (${found.code})`)
}

export async function listening(server: Server, host = '127.0.0.1'): Promise<number> {
  await once(server.listen(0, host), 'listening')
  return portOf(server)
}

/** A start that fails is retried once on another port, if its port is taken by then. */
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
