/** The only listener of a worker: metrics and probes. */
import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { Registry } from 'prom-client'

interface OpsOptions {
  host: string
  port: number
  registry: Registry
  isAlive(): boolean
  isReady(): boolean
}

export class OpsServer {
  readonly url: string
  readonly #server: Server

  private constructor(server: Server, url: string) {
    this.#server = server
    this.url = url
  }

  /** Rejects when the port is taken. */
  static async start({ host, port, registry, isAlive, isReady }: OpsOptions): Promise<OpsServer> {
    const probes: Record<string, () => boolean> = { '/healthz': isAlive, '/readyz': isReady }
    const server = createServer((request, response) => {
      const probe = probes[request.url ?? '']
      if (request.method !== 'GET') response.writeHead(405).end()
      else if (request.url === '/metrics') void sendMetrics(response, registry)
      else if (probe === undefined) response.writeHead(404).end()
      else if (probe()) response.writeHead(200, { 'content-type': 'text/plain' }).end('ok\n')
      else response.writeHead(503, { 'content-type': 'text/plain' }).end('failing\n')
    })
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('the ops server is bound to no port')
    return new OpsServer(server, `http://${host}:${address.port}`)
  }

  async close(): Promise<void> {
    this.#server.close().closeAllConnections()
    await once(this.#server, 'close')
  }
}

async function sendMetrics(response: ServerResponse, registry: Registry): Promise<void> {
  const text = await registry.metrics().catch(() => undefined)
  if (text === undefined) response.writeHead(500).end()
  else response.writeHead(200, { 'content-type': registry.contentType }).end(text)
}
