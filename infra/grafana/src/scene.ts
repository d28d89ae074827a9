// A Spillway on a database and Redis keys of their own, and what people do to them.
import { createNamespace, type GatewayProcess, openSpillway, type Spillway } from '@spillway/local/testing'

export const OPERATOR = { user: 'operator', password: 'operators only' }

export interface Answer {
  status: number
  body: Record<string, unknown>
}

interface SendOptions {
  prefer?: string
  signal?: AbortSignal
}

export interface GatewayHandle extends GatewayProcess {
  register(email: string, password: string): Promise<Answer>
  login(email: string, password: string, options?: SendOptions): Promise<Answer>
  /** A POST of any kind. */
  post(path: string, body: unknown): Promise<Answer>
}

export interface Scene extends Omit<Spillway, 'gateway' | 'close'> {
  /** Starts a gateway, which knows of all workers then. */
  gateway(env?: NodeJS.ProcessEnv): Promise<GatewayHandle>
  close(): Promise<void>
}

/** Low enough that a hash takes a few milliseconds. */
const CHEAP_ARGON2 = { ARGON2_MEMORY_KIB: '4096', ARGON2_TIME: '1' }

/** Opens a scene in the services of this test run; nothing runs in it yet. */
export async function openScene(env: NodeJS.ProcessEnv = {}): Promise<Scene> {
  const namespace = await createNamespace()
  const spillway = openSpillway({
    ...namespace,
    env: { ...CHEAP_ARGON2, ...env },
    gatewayEnv: { OPS_USER: OPERATOR.user, OPS_PASSWORD: OPERATOR.password },
    workerEnv: { WORKER_CONCURRENCY: '1' },
  })
  return {
    ...spillway,
    async gateway(env = {}) {
      const gateway = await spillway.gateway({ env })
      await spillway.knowsWorkers()
      const post = (path: string, body: unknown) => send(gateway.url + path, body)
      return Object.assign(gateway, {
        post,
        register: (email: string, password: string) => post('/v1/users', { email, password }),
        login: (email: string, password: string, options?: SendOptions) =>
          send(`${gateway.url}/v1/login`, { email, password }, options),
      })
    },
    async close() {
      await spillway.close()
      await namespace.close()
    },
  }
}

async function send(url: string, body: unknown, options: SendOptions = {}): Promise<Answer> {
  const { prefer, signal } = options
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(prefer === undefined ? {} : { prefer }) },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? {} : JSON.parse(text) }
}
