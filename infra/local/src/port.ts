// Ports on the loopback interface.
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Whether a server could listen on this port now. */
export async function isFree(port: number, host = '127.0.0.1'): Promise<boolean> {
  return (await tryPort(port, host)) !== undefined
}

/**
 * A port that nothing listens on: the preferred one if it is free, otherwise any. Another process may take it before
 * its user does, so that whoever can listen on port 0 should do that instead.
 */
export async function freePort(preferred = 0): Promise<number> {
  const port = (await tryPort(preferred, '127.0.0.1')) ?? (await tryPort(0, '127.0.0.1'))
  if (port === undefined) throw new Error('no port of 127.0.0.1 is free')
  return port
}

async function tryPort(port: number, host: string): Promise<number | undefined> {
  const server = createServer().listen({ port, host, exclusive: true })
  try {
    await once(server, 'listening')
  } catch {
    return undefined
  }
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : undefined
}
