import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

/** Systems give connections and `listen(0)` ports above these: Linux from 32,768 on. */
const RANGE = [20_000, 32_768] as const

/** The error code of listening there, such as EADDRINUSE; undefined if it is possible. */
export async function whyNotListen(port: number, host: string): Promise<string | undefined> {
  const server = createServer().listen({ port, host, exclusive: true })
  try {
    await once(server, 'listening')
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error)
  }
  server.close()
  await once(server, 'close')
  return undefined
}

/**
 * The preferred port if it is free, else one that the system gives to nobody until it is used.
 * A server that can listen on port 0 should do that instead.
 */
export async function freePort(preferred?: number): Promise<number> {
  let code: string | undefined
  for (let port = preferred || randomInt(...RANGE), n = 0; n < 20; port = randomInt(...RANGE), n++) {
    code = await whyNotListen(port, '127.0.0.1')
    if (code === undefined) return port
  }
  throw new Error(`no port of 127.0.0.1 can be listened on (${code})`)
}

export async function listening(server: Server, host = '127.0.0.1'): Promise<number> {
  await once(server.listen(0, host), 'listening')
  const address = server.address()
  if (typeof address === 'object' && address !== null) return address.port
  throw new Error('the server is bound to no port')
}

/** A start that fails is retried once on another port, if its port is taken by then. */
export async function onFreePort<T>(preferred: number | undefined, start: (port: number) => Promise<T>): Promise<T> {
  const port = await freePort(preferred)
  try {
    return await start(port)
  } catch (error) {
    if ((await whyNotListen(port, '127.0.0.1')) === undefined) throw error
    return start(await freePort())
  }
}
