// A small HTTP client for the open loops and the probes: keeps connections, opens as many as are needed, and gives up on
// an answer after the same time for everyone.
import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { type Outcome, outcomeOf, TIMEOUT_MS } from '../measure/tally.ts'

export interface Answer {
  outcome: Outcome
  /** 0 when there was no answer. */
  status: number
  body: string
  /** What Retry-After asks for; 1,000 when it is missing. */
  retryAfterMs: number
}

export interface Client {
  get(path: string): Promise<Answer>
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>
  close(): void
}

/** Never rejects: what goes wrong is an outcome. */
export function createClient(url: string, options: { timeoutMs?: number } = {}): Client {
  const { timeoutMs = TIMEOUT_MS } = options
  const agent = new Agent({ keepAlive: true })
  const { hostname, port } = new URL(url)

  function send(method: string, path: string, body?: string, extra: Record<string, string> = {}): Promise<Answer> {
    return new Promise((resolve) => {
      const headers =
        body === undefined
          ? extra
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...extra }
      const outgoing = request({ agent, hostname, port, method, path, headers }, async (response) => {
        const status = response.statusCode ?? 0
        const retryAfterMs = Number(response.headers['retry-after'] ?? 1) * 1_000
        const received = await text(response).catch(() => undefined)
        clearTimeout(timer)
        if (received === undefined) resolve(failed(late ? 'timeout' : 'error'))
        else resolve({ outcome: outcomeOf(status), status, body: received, retryAfterMs })
      })
      let late = false
      const timer = setTimeout(() => {
        late = true
        outgoing.destroy()
      }, timeoutMs)
      outgoing.on('error', () => {
        clearTimeout(timer)
        resolve(failed(late ? 'timeout' : 'error'))
      })
      outgoing.end(body)
    })
  }

  return {
    get: (path) => send('GET', path),
    post: (path, body, headers) => send('POST', path, JSON.stringify(body), headers),
    close: () => agent.destroy(),
  }
}

function failed(outcome: Outcome): Answer {
  return { outcome, status: 0, body: '', retryAfterMs: 1_000 }
}
