/** The only listener of a worker: metrics and probes. */
import { createServer, type ServerResponse } from 'node:http'
import { limitPipelining } from '@spillway/common/pipeline-limit'
import type { Registry } from 'prom-client'

export interface OpsServer {
  url: string
  close(): Promise<void>
}

export interface OpsOptions {
  host: string
  port: number
  registry: Registry
  isAlive(): boolean
  isReady(): boolean
}

/** Serves `/metrics`, `/healthz` and `/readyz`; rejects when the port is taken. */
export async function startOps({ host, port, registry, isAlive, isReady }: OpsOptions): Promise<OpsServer> {
  const probes: Record<string, () => boolean> = { '/healthz': isAlive, '/readyz': isReady }
  async function sendMetrics(response: ServerResponse): Promise<void> {
    const text = await registry.metrics().catch(() => undefined)
    if (text === undefined) response.writeHead(500).end()
    else response.writeHead(200, { 'content-type': registry.contentType }).end(text)
  }

  function sendProbe(response: ServerResponse, isGood: boolean): void {
    response.writeHead(isGood ? 200 : 503, { 'content-type': 'text/plain' }).end(isGood ? 'ok\n' : 'failing\n')
  }

  // Node would answer a request without Host, or with an unknown expectation, past the limit of pipelined requests.
  const server = createServer({ requireHostHeader: false }, (request, response) => {
    const probe = probes[request.url ?? '']
    if (request.method !== 'GET') response.writeHead(405).end()
    else if (request.url === '/metrics') void sendMetrics(response)
    else if (probe === undefined) response.writeHead(404).end()
    else sendProbe(response, probe())
  })
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  limitPipelining(server)
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the ops server is bound to no port')
  return {
    url: `http://${host}:${address.port}`,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error === undefined ? resolve() : reject(error)))
        server.closeAllConnections()
      }),
  }
}
