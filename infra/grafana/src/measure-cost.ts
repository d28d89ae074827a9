// The command `pnpm --filter @spillway/grafana cost`: processor time of a login, gateway and worker together, with everything that
// operators may turn on against nothing of it. Both systems run side by side and are measured by turns, so that whatever else this
// machine does falls on both.
import { createServer } from 'node:http'
import { createGatewayMetrics } from '@spillway/api/metrics'
import { listening } from '@spillway/local/processes/port'
import { processorMs } from '@spillway/local/processes/processor-time'
import type { Member } from '@spillway/local/rig'
import { quantile } from '@spillway/local/rig/quantile'
import { type GatewayHandle, OPERATOR, openScene, runWithServices, type Scene } from './scene.ts'

/** Code is compiled in the first rounds: until some thousand logins both sides take up to twice as long. */
const WARM_UP_ROUNDS = 4
const ROUNDS = 12
const LOGINS = 400
const IN_FLIGHT = 8
/** A login is counted and timed this often, at both ends together. */
const METRIC_UPDATES = 8

interface System {
  scene: Scene
  gateway: GatewayHandle
  worker: Member
}

const account = { email: 'someone@example.test', password: 'a passphrase' }

async function openSystem(env: NodeJS.ProcessEnv): Promise<System> {
  const scene = await openScene({ ARGON2_MEMORY_KIB: '19456', ARGON2_TIME: '2', ...env })
  const worker = await scene.worker()
  const gateway = await scene.gateway()
  await gateway.api.register(account)
  return { scene, gateway, worker }
}

/** Accepts every request. */
async function openSink(): Promise<{ url: string; close(): void }> {
  const server = createServer((request, response) => request.resume().on('end', () => response.end('{}')))
  const port = await listening(server)
  return { url: `http://127.0.0.1:${port}`, close: () => server.closeAllConnections() ?? server.close() }
}

/** Prometheus every five seconds, an open live page, and an open board. */
function watch({ gateway, worker }: System): () => void {
  const headers = { authorization: `Basic ${btoa(`${OPERATOR.user}:${OPERATOR.password}`)}` }
  const get = (url: string) =>
    void fetch(url, { headers }).then(
      (response) => response.arrayBuffer(),
      () => undefined,
    )
  const board = '/queues/api/queues?activeQueue=passwords&status=latest&page=1&jobsPerPage=10'
  const timers = [
    setInterval(() => [gateway, worker].map(({ opsUrl }) => get(`${opsUrl}/metrics`)), 5_000),
    setInterval(() => get(`${gateway.opsUrl}/live.json`), 1_000),
    setInterval(() => get(gateway.opsUrl + board), 5_000),
  ]
  return () => timers.map((timer) => clearInterval(timer))
}

/** Processor time of a login in milliseconds, over many. */
async function measure({ gateway, worker }: System): Promise<number> {
  const pids = [gateway.pid, worker.pid]
  const before = processorMs(pids)
  let left = LOGINS
  const caller = async () => {
    while (left-- > 0) {
      const { status } = await gateway.api.login(account)
      if (status !== 200) throw new Error(`a login was answered with ${status}`)
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, caller))
  return (processorMs(pids) - before) / LOGINS
}

/** The time of counting, which is never off, in milliseconds a login. */
function countingMs(): number {
  const { wait } = createGatewayMetrics([])
  const updates = 200_000
  const startedAt = performance.now()
  for (let update = 0; update < updates; update++) wait.observe({ operation: 'login', outcome: 'answered' }, 0.1)
  return ((performance.now() - startedAt) / updates) * METRIC_UPDATES
}

await runWithServices(async () => {
  const sink = await openSink()
  const off = await openSystem({})
  const on = await openSystem({ OTEL_EXPORTER_OTLP_ENDPOINT: sink.url })
  try {
    const times: Record<'off' | 'on', number[]> = { off: [], on: [] }
    for (let round = 0; round < ROUNDS; round++) {
      times.off.push(await measure(off))
      const stopWatching = watch(on)
      times.on.push(await measure(on))
      stopWatching()
    }
    const median = (all: number[]) => quantile(all.slice(WARM_UP_ROUNDS), 0.5) ?? Number.NaN
    const [offMs, onMs] = [median(times.off), median(times.on)]
    const counting = countingMs()
    console.log(
      `off  ${offMs.toFixed(2)} ms of processor time a login (${times.off.map((ms) => ms.toFixed(2)).join(' ')})`,
    )
    console.log(`on   ${onMs.toFixed(2)} ms (${times.on.map((ms) => ms.toFixed(2)).join(' ')})`)
    console.log(`counting, which is never off: ${(counting * 1_000).toFixed(1)} µs of that`)
    console.log(`more with everything on: ${((100 * (onMs - offMs + counting)) / (offMs - counting)).toFixed(1)} %`)
  } finally {
    sink.close()
    await Promise.all([off.scene.close(), on.scene.close()])
  }
})
