// A gateway on its own processor under more and more load, with workers to spare, and endpoints
// beside it that need no hash.
import { fileURLToPath } from 'node:url'
import { startProcess } from '@spillway/infra/processes/node-process'
import { moveTo, pinned } from '@spillway/infra/processes/processor-time'
import { ask, type Credentials } from '@spillway/infra/rig/api-client'
import { allCores, compiled, contenderCores } from '../contenders/contender.ts'
import { type Credential, verdictOf } from '../load/accounts.ts'
import { Probe } from '../measure/probe.ts'
import type { Findings } from './findings.ts'
import type { RushOptions, RushResult } from './rush.ts'
import type { Scenario } from './scenario.ts'
import { onOwnRedis, type Stage, type System } from './stage/stage.ts'

/** How long some logins take, one after the other, in milliseconds; infinite without a verdict. */
export async function loginsInTurn(
  { gateways, login }: System,
  count: number,
  url = gateways[0]?.url,
): Promise<number[]> {
  const times: number[] = []
  for (let n = 0; n < count; n++) {
    const { status, tookMs } = await ask(url ?? '', '/v1/login', { body: login(4_000 + n) })
    times.push(status === 200 ? tookMs : Number.POSITIVE_INFINITY)
  }
  return times
}

export async function slowestLogin(system: System, count: number): Promise<number> {
  return Math.max(...(await loginsInTurn(system, count)))
}

// Scenarios with a short gateway: its workers wait instead of hashing, and it has a share of a
// core. Connections are kept, as by an ingress.

/** Each "hash" waits 20 ms in one of these slots: far more than one gateway passes on. */
export const credential = 'wait-20'
const workerEnv = { WORKER_CONCURRENCY: '200' }

/**
 * The gateway's share of a core. With a whole core the other processes were the bottleneck on two
 * processors, and some runs refused nothing.
 */
const GATEWAY_SHARE = 0.6
const WARM_UP = { perSecond: 600, connections: 200, durationS: 5, settlingS: 0 }

/**
 * Runs it on a warm gateway with this share, on its own processor where possible, and one worker.
 * Load and database have the other processors.
 */
export function onShortGateway(run: (system: System, url: string, stage: Stage) => Promise<Findings>): Scenario['run'] {
  const onRedis = onOwnRedis({ credential, gateways: 0, workers: 1, workerEnv }, async (system, stage) => {
    const { url, pid } = await system.gateway(contenderCores ? { cores: [0] } : {})
    await system.knowsWorkers(1)
    await rush(stage, { url, sends: { credential }, ...WARM_UP })
    // From now on. Linux alone.
    const share = startProcess({
      entry: compiled('measure/processor-share-program'),
      args: [`${GATEWAY_SHARE}`, `${pid}`],
    })
    try {
      return await run(system, url, stage)
    } finally {
      // Asked to end, so that the gateway does not stay stopped.
      await share.stop()
    }
  })
  return async (stage) => {
    const pids = [process.pid, stage.postgres.pid()]
    // Processes that are started from here inherit the processors.
    for (const pid of pids) if (contenderCores) moveTo(pid, contenderCores)
    try {
      return await onRedis(stage)
    } finally {
      for (const pid of pids) moveTo(pid, allCores)
    }
  }
}

const program = fileURLToPath(new URL('rush.ts', import.meta.url))

/** Sends requests from a process of its own: this one is busy with the logs of the others. */
export async function rush({ keeper }: Stage, options: RushOptions, cores = contenderCores): Promise<RushResult> {
  const [command = '', ...args] = pinned([process.execPath, '--import', 'tsx', program, JSON.stringify(options)], cores)
  return JSON.parse(await keeper.run({ command, args }))
}

export type Load = Omit<RushOptions, 'sends' | 'url'>

/** Sends logins, and counts their answers: what is no verdict, ticket or refusal has failed. */
export async function rushLogins(
  stage: Stage,
  { credential, ...options }: Load & { url: string; credential: Credential },
  findings: Findings,
  cores = contenderCores,
) {
  const { statuses, timeouts, errors, slowestMs } = await rush(stage, { sends: { credential }, ...options }, cores)
  const { [verdictOf(credential)]: verdicts = 0, 202: tickets = 0, 503: refused = 0 } = statuses
  const answers = answersOf(statuses)
  findings.requests += answers + timeouts + errors
  findings.succeeded += verdicts
  findings.ticketed += tickets
  findings.refused += refused
  findings.failed += answers - verdicts - tickets - refused + timeouts + errors
  const perSecond = verdicts / (options.durationS - options.settlingS)
  return { perSecond, tickets, refused, slowestMs }
}

/** Whatever their status is. */
export function answersOf(statuses: RushResult['statuses']): number {
  return Object.values(statuses).reduce((sum, count) => sum + count, 0)
}

// Endpoints that need no hash, asked at a steady rate while logins come in spikes.

/** What to ask for, by its path; false is a failure. */
type Requests = Record<string, () => Promise<boolean>>

const PER_SECOND = 20

/** Logs in once, and from then on has four endpoints to ask. */
export async function neighboursOf(url: string, login: Credentials): Promise<Requests> {
  const session = (await ask(url, '/v1/login', { body: login })).body
  const headers = { authorization: `Bearer ${session.accessToken}` }
  let { refreshToken } = session
  async function refresh(): Promise<boolean> {
    const { status, body } = await ask(url, '/v1/token/refresh', { body: { refreshToken } })
    refreshToken = body.refreshToken ?? refreshToken
    return status === 200
  }
  // One after the other: a token that is used again after its grace ends the session.
  let refreshing = Promise.resolve(true)
  return {
    '/healthz': () => isOk(url, '/healthz'),
    '/readyz': () => isOk(url, '/readyz'),
    '/v1/me': () => isOk(url, '/v1/me', headers),
    '/v1/token/refresh': () => (refreshing = refreshing.then(refresh)),
  }
}

async function isOk(url: string, path: string, headers: Record<string, string> = {}): Promise<boolean> {
  return (await ask(url, path, { headers })).status === 200
}

/**
 * Asks a gateway for these from now on, and an empty server on the gateway's processor, whose
 * latency is the delay of machine and generator. The end of the scenario ends that, too.
 *
 * @param requests [/healthz alone]
 */
export async function watchNeighbours(
  { keeper, endings }: Stage,
  url: string,
  requests: Requests = { '/healthz': () => isOk(url, '/healthz') },
) {
  const bare = startProcess({ entry: '-e', args: [BARE_PROGRAM], keeper, cores: contenderCores && [0] })
  const { msg: bareUrl = '' } = await bare.waitForLog(({ msg }) => msg?.startsWith('http') === true)
  const probe = (ask: () => Promise<boolean>) => new Probe({ perSecond: PER_SECOND, ask }).start()
  const machine = probe(() => isOk(bareUrl, ''))
  const probes = Object.entries(requests).map(([path, ask]) => [path, probe(ask)] as const)
  async function end() {
    await Promise.all([machine, ...probes.map(([, probe]) => probe)].map((probe) => probe.stop()))
    await bare.close()
  }
  endings.add(end)
  return {
    /** Ends that. No request may fail; how long they took is noted. */
    async report(findings: Findings): Promise<void> {
      await end()
      endings.delete(end)
      findings.notes.push(`a bare server p99 ${machine.p99()}`)
      for (const [path, probe] of probes) {
        findings.notes.push(`${path} p99 ${probe.p99()}`)
        findings.expect(probe.failed === 0, `${path} failed ${probe.failed} times`)
      }
    },
  }
}

const BARE_PROGRAM = `const server = require('node:http').createServer((_, answer) => answer.end('{}'))
server.listen(0, '127.0.0.1', () => console.log('http://127.0.0.1:' + server.address().port))`
