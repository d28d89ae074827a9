// The Kubernetes API as far as it is needed here: objects by their path, and a watch on a list of
// them.
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Certificate } from '@spillway/infra/rig/certificates'

/** An object of a list at the start of a watch, or a change to one. */
export interface WatchEvent<T> {
  type: 'ADDED' | 'MODIFIED' | 'DELETED'
  object: T
}

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/** The pause between the end of a watch and the next. */
const RECONNECT_MS = 100

export class KubernetesApi {
  readonly #url: string
  readonly #agent: Agent

  /** @param client the user that requests are made as */
  constructor(url: string, authority: Certificate, client: Certificate) {
    this.#url = url
    this.#agent = new Agent({
      keepAlive: true,
      ca: readFileSync(authority.certFile),
      cert: readFileSync(client.certFile),
      key: readFileSync(client.keyFile),
    })
  }

  /** Rejects for any status but 2xx. */
  async call<T>(method: Method, path: string, body?: unknown): Promise<T> {
    const response = await this.#open(method, path, body)
    const { statusCode: status = 0 } = response
    const received = await text(response)
    if (status >= 200 && status <= 299) return JSON.parse(received)
    throw new Error(`${method} ${path} was answered with ${status}: ${received.slice(0, 300)}`)
  }

  /** The status of a condition of an object; undefined as long as it has no conditions. */
  async conditionOf(path: string, wanted: string): Promise<string | undefined> {
    type WithConditions = { status?: { conditions?: { type: string; status: string }[] } }
    const { status } = await this.call<WithConditions>('GET', path)
    return status?.conditions?.find(({ type }) => type === wanted)?.status
  }

  /** Reports every object of a list, and every change, until it is closed. */
  watch<T>(path: string, onEvent: (event: WatchEvent<T>) => void): { close(): void } {
    let closed = false
    let current: IncomingMessage | undefined
    const follow = async () => {
      // Without a resource version, a watch starts with the objects that exist.
      current = await this.#open('GET', `${path}?watch=true`)
      for await (const line of createInterface({ input: current })) if (!closed) onEvent(JSON.parse(line))
    }
    const keep = async () => {
      for (; !closed; await sleep(RECONNECT_MS)) await follow().catch(() => undefined)
    }
    void keep()
    return {
      close(): void {
        closed = true
        current?.destroy()
      },
    }
  }

  close(): void {
    this.#agent.destroy()
  }

  #open(method: Method, path: string, body?: unknown): Promise<IncomingMessage> {
    // A merge patch: the given fields replace the present ones.
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const sent = body === undefined ? '' : JSON.stringify(body)
    // Node leaves the length out of a DELETE, whose body would then be taken for the next request.
    const headers = { 'content-type': type, 'content-length': Buffer.byteLength(sent) }
    return new Promise((resolve, reject) => {
      request(new URL(path, this.#url), { agent: this.#agent, method, headers }, resolve).on('error', reject).end(sent)
    })
  }
}
