// A small load balancer as deployments have one: it asks every gateway for its readiness, sends each request to the next
// one that is ready, and tries nothing twice.

import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@spillway/local/processes/until'

export interface Balancer {
  url: string
  /** Resolves when it has been found ready. */
  add(url: string): Promise<void>
  remove(url: string): void
  close(): Promise<void>
}

const PROBE_EVERY_MS = 200
const PROBE_PATIENCE_MS = 1_000

/** Starts without any gateway. */
export async function startBalancer(): Promise<Balancer> {
  const ready = new Map<string, boolean>()
  const agent = new Agent({ keepAlive: true })
  let turn = 0

  async function probe(url: string): Promise<void> {
    const ok = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(PROBE_PATIENCE_MS) }).then(
      (response) => response.ok,
      () => false,
    )
    if (ready.has(url)) ready.set(url, ok)
  }

  const server = createServer((incoming, outgoing) => {
    const choices = [...ready].filter(([, ok]) => ok)
    const [url] = choices[turn++ % Math.max(choices.length, 1)] ?? []
    if (url === undefined) return void outgoing.writeHead(502).end()
    const { hostname, port } = new URL(url)
    const { method, url: path, headers } = incoming
    const forwarded = request({ agent, hostname, port, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    forwarded.on('error', () => {
      if (outgoing.headersSent) outgoing.destroy()
      else outgoing.writeHead(502).end()
    })
    outgoing.on('close', () => forwarded.destroy())
    incoming.pipe(forwarded)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the balancer is bound to no port')
  const closed = new AbortController()

  /** One probe at a time: of two that overlap, the older answer might come last. */
  async function watch(url: string): Promise<void> {
    while (ready.has(url) && !closed.signal.aborted) {
      await probe(url)
      await sleep(PROBE_EVERY_MS)
    }
  }

  return {
    url: `http://127.0.0.1:${address.port}`,
    async add(url) {
      ready.set(url, false)
      void watch(url)
      await until(() => ready.get(url), { what: `${url} being ready` })
    },
    remove(url) {
      ready.delete(url)
    },
    async close() {
      closed.abort()
      agent.destroy()
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
