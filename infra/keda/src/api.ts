// The Kubernetes API as far as it is needed here: objects by their path, and a watch on a list of them.
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { createInterface } from 'node:readline'
import type { Certificate } from '@spillway/local/testing/certificates'

export interface ApiOptions {
  url: string
  authority: Certificate
  /** Who asks. */
  client: Certificate
}

/** An object that changed, or is there from the start. */
export interface WatchEvent<T> {
  type: 'ADDED' | 'MODIFIED' | 'DELETED'
  object: T
}

export interface KubernetesApi {
  /** Rejects with an ApiFailure for any status but 2xx. */
  call<T>(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<T>
  /** Tells of every object of a list that is there, comes, changes or goes, until it is closed. */
  watch<T>(path: string, onEvent: (event: WatchEvent<T>) => void): { close(): void }
  close(): void
}

export class ApiFailure extends Error {
  override readonly name = 'ApiFailure'
  readonly status: number

  constructor(method: string, path: string, status: number, reason: string) {
    super(`${method} ${path} was answered with ${status}: ${reason}`)
    this.status = status
  }
}

/** Between the end of a watch and the next. */
const RECONNECT_MS = 100

export function connectApi({ url, authority, client }: ApiOptions): KubernetesApi {
  const agent = new Agent({
    keepAlive: true,
    ca: readFileSync(authority.certFile),
    cert: readFileSync(client.certFile),
    key: readFileSync(client.keyFile),
  })

  function open(method: string, path: string, body?: unknown): Promise<IncomingMessage> {
    // A merge patch: the fields that are given replace those that are there.
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const text = body === undefined ? '' : JSON.stringify(body)
    // The length by hand: Node leaves it out of a DELETE, whose body would then be taken for the next request.
    const headers = { 'content-type': type, 'content-length': Buffer.byteLength(text) }
    return new Promise((resolve, reject) => {
      request(new URL(path, url), { agent, method, headers }, resolve).on('error', reject).end(text)
    })
  }

  async function call<T>(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<T> {
    const response = await open(method, path, body)
    let text = ''
    for await (const piece of response.setEncoding('utf8')) text += piece
    const status = response.statusCode ?? 0
    if (status < 200 || status > 299) throw new ApiFailure(method, path, status, text.slice(0, 300))
    return JSON.parse(text)
  }

  function watch<T>(path: string, onEvent: (event: WatchEvent<T>) => void): { close(): void } {
    let closed = false
    let current: IncomingMessage | undefined
    async function follow(): Promise<void> {
      // Without a resource version, a watch starts with all that is there.
      current = await open('GET', `${path}?watch=true`)
      for await (const line of createInterface({ input: current })) if (!closed) onEvent(JSON.parse(line))
    }
    async function keep(): Promise<void> {
      while (!closed) {
        await follow().catch(() => undefined)
        await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS))
      }
    }
    void keep()
    return {
      close() {
        closed = true
        current?.destroy()
      },
    }
  }

  return { call, watch, close: () => agent.destroy() }
}
