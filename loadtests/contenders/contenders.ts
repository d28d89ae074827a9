// The contenders, in the order of the report. The first is what the others are compared with.
import { randomBytes } from 'node:crypto'
import { deleteKeys } from '@spillway/infra/harness/namespace'
import { limitsOf, openSpillway } from '@spillway/infra/harness/spillway'
import { allOrNone } from '@spillway/infra/services/services'
import {
  type Contender,
  contenderCores,
  coreCount,
  type Running,
  type StartOptions,
  startProgram,
  startRival,
} from './contender.ts'

/** Each waiting caller is a Node process of about 45 MB. */
const MOST_SCRIPTS = 200
/** One for each processor, and at least two, since one would leave nothing to take in turn. */
const LEAST_WORKERS = 2

export const contenders: readonly Contender[] = [
  {
    name: 'in-process',
    title: 'In the handler',
    origin: 'https://haile37.pages.dev/blog/bcrypt-login-bottleneck-kubernetes (where it started), and most tutorials',
    how: 'The handler awaits the hash; it runs on the four threads libuv keeps for files, names and compression.',
    start: (options) => startRival('in-process', options),
  },
  {
    name: 'threads-128',
    title: 'UV_THREADPOOL_SIZE=128',
    origin: 'https://haile37.pages.dev/blog/bcrypt-login-bottleneck-kubernetes (tried, and not the whole answer)',
    how: 'The same server; libuv keeps 128 threads instead of four, so that up to 128 hashes share the processor.',
    start: (options) => startRival('in-process', options, { UV_THREADPOOL_SIZE: '128' }),
  },
  {
    name: 'script-per-compare',
    title: 'A script for each compare',
    origin: 'https://haile37.pages.dev/blog/bcrypt-login-bottleneck-kubernetes (the fix its author shipped)',
    how: 'Each hash starts a process of its own, which ends with the answer.',
    mostCallers: MOST_SCRIPTS,
    start: (options) => startRival('script-per-compare', options),
  },
  {
    name: 'piscina',
    title: 'A Piscina pool',
    origin: 'https://johnvesslyalti.xyz/blogs/scaling-nodejs-piscina (DevNest)',
    how: 'A pool of worker threads in the server; the pool queues what its threads have no time for.',
    start: (options) => startRival('piscina', options),
  },
  {
    name: 'piscina-cluster',
    title: 'Piscina and cluster',
    origin: 'https://johnvesslyalti.xyz/blogs/scaling-nodejs-piscina (DevNest)',
    how: 'Copies of the pooled server, one for each processor and at least two, share a port through node:cluster.',
    start: (options) => startRival('piscina', options, { CLUSTER: 'true' }),
  },
  {
    name: 'http-workers',
    title: 'HTTP workers',
    origin: 'https://github.com/eugenioenko/autentico/pull/299 (Verifico; never merged)',
    how: 'The server posts each verify to a list of workers in turn, five seconds each, then hashes locally.',
    start: startHttpWorkers,
  },
  {
    name: 'beside',
    title: '@spillway/client',
    origin: 'this repository: one import in the application, without Redis',
    how: 'A process beside the server hashes several passwords at a time.',
    start: (options) => startRival('beside', options),
  },
  {
    name: 'spillway',
    title: 'Spillway',
    origin: 'this repository: one gateway, one worker with as many slots as it has cores, Redis',
    how: 'The gateway seals each hash or verify into a job, and a worker does it.',
    start: startSpillway,
  },
]

export function titleOf(name: string): string {
  return contenders.find((contender) => contender.name === name)?.title ?? name
}

async function startHttpWorkers(options: StartOptions): Promise<Running> {
  const env = { SHARED_SECRET: randomBytes(32).toString('hex') }
  const count = Math.max(LEAST_WORKERS, coreCount)
  const start = () => startProgram('contenders/rivals/http-workers', env)
  const workers = await allOrNone(Array.from({ length: count }, start))
  const closeWorkers = () => Promise.all(workers.map((worker) => worker.close()))
  const urls = workers.map(({ url }) => url).join(',')
  try {
    const server = await startRival('http-workers', options, { ...env, WORKERS: urls })
    const close = async () => {
      await Promise.all([server.close(), closeWorkers()])
    }
    return { ...server, close }
  } catch (error) {
    await closeWorkers()
    throw error
  }
}

/** Counted as in production, and never reached: all callers come from one address. */
const UNREACHED = 1_000_000

async function startSpillway({ databaseUrl, redisUrl, env = {} }: StartOptions): Promise<Running> {
  const spillway = openSpillway({
    databaseUrl,
    redisUrl,
    env,
    gatewayEnv: limitsOf(UNREACHED),
    // The engine to measure may be chosen by the environment.
    workerEnv: { HASH_ENGINE: process.env.HASH_ENGINE, WORKER_CONCURRENCY: String(coreCount) },
    keepOnly: 'nothing',
  })
  const close = async () => {
    await spillway.close()
    await deleteKeys(redisUrl, spillway.queuePrefix)
  }
  try {
    const cores = contenderCores
    const [gateway, worker] = await Promise.all([spillway.gateway({ cores }), spillway.worker({ cores })])
    await spillway.knowsWorkers()
    // The file it serves itself: a stat and a read.
    const pids = { gateway: gateway.pid, worker: worker.pid }
    return { url: gateway.url, neighbourPath: '/docs/static/logo.svg', pids, close }
  } catch (error) {
    await close()
    throw error
  }
}
