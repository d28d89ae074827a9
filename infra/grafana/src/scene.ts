// Gateways and workers as processes, on a database and Redis keys of their own, and what people do to them.
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { createNamespace, type Namespace, startProcess, type TestProcess, until } from '@spillway/local/testing'

export const OPERATOR = { user: 'operator', password: 'operators only' }

export interface Answer {
  status: number
  body: Record<string, unknown>
}

export interface GatewayHandle {
  url: string
  opsUrl: string
  process: TestProcess
  register(email: string, password: string): Promise<Answer>
  login(email: string, password: string, options?: { prefer?: string; signal?: AbortSignal }): Promise<Answer>
  /** A POST of any kind. */
  post(path: string, body: unknown): Promise<Answer>
}

export interface WorkerHandle {
  opsUrl: string
  process: TestProcess
}

export interface Scene {
  namespace: Namespace
  sealKeys: string
  gateway(env?: NodeJS.ProcessEnv): Promise<GatewayHandle>
  worker(env?: NodeJS.ProcessEnv): Promise<WorkerHandle>
  workers(): WorkerHandle[]
  close(): Promise<void>
}

/** Low enough that a hash takes a few milliseconds. */
const CHEAP_ARGON2 = { ARGON2_MEMORY_KIB: '4096', ARGON2_TIME: '1' }

/** Opens a scene in the services of this test run; nothing runs in it yet. */
export async function openScene(shared: NodeJS.ProcessEnv = {}): Promise<Scene> {
  const namespace = await createNamespace()
  const processes: TestProcess[] = []
  const workers: WorkerHandle[] = []
  const { privateKey } = generateKeyPairSync('ed25519')
  const sealKeys = `scene:${randomBytes(32).toString('base64')}`
  const env = {
    ...CHEAP_ARGON2,
    DATABASE_URL: namespace.databaseUrl,
    REDIS_URL: namespace.redisUrl,
    QUEUE_PREFIX: namespace.queuePrefix,
    SPILLWAY_SEAL_KEYS: sealKeys,
    SPILLWAY_JWT_KEYS: `scene:${privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64')}`,
    OPS_USER: OPERATOR.user,
    OPS_PASSWORD: OPERATOR.password,
    PORT: '0',
    OPS_PORT: '0',
    LIMIT_PER_ADDRESS: '0',
    LIMIT_PER_ACCOUNT: '0',
    LIMIT_REFRESH_PER_ADDRESS: '0',
    LIMIT_REFRESH_PER_SESSION: '0',
    LIMIT_REDEEM_PER_ADDRESS: '0',
    ...shared,
  }

  async function start(entry: string, ready: string, own: NodeJS.ProcessEnv) {
    const process = startProcess({ entry, env: { ...env, ...own } })
    processes.push(process)
    return { process, line: await process.waitForLog(({ msg }) => msg === ready, 30_000) }
  }

  return {
    namespace,
    sealKeys,
    async gateway(own = {}) {
      const { process, line } = await start('api/dist/main.js', 'gateway listening', own)
      const url = String(line.url)
      await until(async () => JSON.parse(await (await fetch(`${url}/readyz`)).text()).workers === workers.length)
      const post = (path: string, body: unknown) => send(url + path, body)
      return {
        url,
        opsUrl: String(line.opsUrl),
        process,
        post,
        register: (email, password) => post('/v1/users', { email, password }),
        login: (email, password, options) => send(`${url}/v1/login`, { email, password }, options),
      }
    },
    async worker(own = {}) {
      const { process, line } = await start('worker/dist/main.cjs', 'worker ready', { WORKER_CONCURRENCY: '1', ...own })
      const worker = { opsUrl: String(line.opsUrl), process }
      workers.push(worker)
      return worker
    },
    workers: () => workers,
    async close() {
      await Promise.all(processes.map((process) => process.stop().catch(() => process.close())))
      await namespace.close()
    },
  }
}

async function send(
  url: string,
  body: unknown,
  options: { prefer?: string; signal?: AbortSignal } = {},
): Promise<Answer> {
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
