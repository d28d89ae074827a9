// `pnpm load cost`: the processor time of everything that is no hash, of each call and by part; in turn with another checkout.
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runWithKeeper } from '@spillway/infra/processes/command'
import { parseCommandLine, positive, UserError, whole } from '@spillway/infra/processes/command-line'
import type { Keeper } from '@spillway/infra/processes/keeper'
import { repositoryDir } from '@spillway/infra/processes/repository'
import { startProcess } from '@spillway/infra/rig'
import { createApiClient } from '@spillway/infra/rig/api-client'
import { markdownTable } from 'markdown-table'
import { compiled } from '../contenders/contender.ts'
import { processorTimeOf } from '../measure/observe.ts'
import { pickNamed } from '../src/options.ts'
import { type Costed, costed } from './calls.ts'
import { type CostSystem, openCostSystem } from './system.ts'

const SECONDS = 4
const ROUNDS = 3
const WARM_UP_S = 3
const PARTS = ['gateway', 'worker', 'postgres', 'redis'] as const

/** What can be left out by a setting, and the settings. */
const promises: Record<string, NodeJS.ProcessEnv> = {
  limits: {
    LIMIT_PER_ADDRESS: '0',
    LIMIT_PER_ACCOUNT: '0',
    LIMIT_REDEEM_PER_ADDRESS: '0',
    LIMIT_REFRESH_PER_ADDRESS: '0',
    LIMIT_REFRESH_PER_SESSION: '0',
  },
  guesses: { GUESSES_PER_ACCOUNT: '0' },
  audit: { AUDIT_RETENTION_DAYS: '0' },
}

const help = `pnpm load cost [call ...] [--before path] [--rounds n] [--seconds s] [--profile dir] [--without] [--size]
pnpm load floor [...]

Measures the processor time of gateway, worker, PostgreSQL and Redis for one call, with hashes that cost nothing, and prints means in
milliseconds. Processor time is not disturbed as easily as time; many short rounds (--rounds 50 --seconds 0.4) compare best. "floor" measures
in turn with bare parts that do what a login cannot do without: Fastify with a validated body, two statements by pg, a job of BullMQ's awaited
over pub/sub, a signature by Ed25519; of a made-up ticket, a POST whose answer is held as long.

  --before path   another checkout of Spillway, installed, that is measured in turn with this one
  --rounds n      how often each call is measured [${ROUNDS}]
  --seconds s     for how long each time [${SECONDS}]
  --profile dir   where Node leaves the CPU profiles of this checkout's gateway and worker; they are slower with it
  --without       also measures this checkout without each of: ${Object.keys(promises).join(', ')}; what is more with it is its cost
  --size          writes what a held login takes to infra/sizing/figures.json, which \`pnpm size\` reckons with
  --help          prints this

Calls
${costed.map(({ name, title, seconds }) => `  ${name.padEnd(16)}${title}${seconds === undefined ? '' : ', where it is named'}`).join('\n')}
`

const options = {
  before: { type: 'string' },
  rounds: { type: 'string' },
  seconds: { type: 'string' },
  profile: { type: 'string' },
  without: { type: 'boolean' },
  size: { type: 'boolean' },
} as const

type Cost = Record<(typeof PARTS)[number] | 'all' | 'perSecond', number>

/** Runs the command. Resolves when all is closed. */
export async function costCommand([name, ...args]: readonly string[]): Promise<void> {
  const { values, positionals } = parseCommandLine(`pnpm load ${name}`, args, options, { allowPositionals: true })
  if (values.help) return console.log(help)
  const isFloor = name === 'floor'
  const all = isFloor ? costed.filter(({ hasFloor }) => hasFloor) : costed
  const usual = all.filter(({ seconds }) => seconds === undefined)
  const chosen = positionals.length > 0 ? pickNamed('call', all, positionals) : usual
  const rounds = whole('--rounds', values.rounds ?? String(ROUNDS))
  const seconds = positive('--seconds', values.seconds ?? String(SECONDS))
  await runWithKeeper(async (keeper) => {
    const systems: CostSystem[] = []
    const names = ['this']
    const add = (name: string, system: CostSystem) => {
      systems.push(system)
      names.push(name)
    }
    try {
      const own = await openCostSystem(keeper, { profilesDir: values.profile })
      systems.push(own)
      if (values.before !== undefined) add('before', await openCostSystem(keeper, { checkout: values.before }))
      if (values.without)
        for (const [name, env] of Object.entries(promises)) add(`no ${name}`, await openCostSystem(keeper, { env }))
      if (isFloor) add('floor', await openFloor(keeper, own))
      const costs = await measure(keeper, systems, names, chosen, { rounds, seconds })
      if (values.size) await keepForSizing(costs)
    } finally {
      for (const system of systems.reverse()) await system.close()
    }
  })
}

async function measure(
  keeper: Keeper,
  systems: readonly CostSystem[],
  names: readonly string[],
  chosen: readonly Costed[],
  { rounds, seconds }: { rounds: number; seconds: number },
): Promise<Map<Costed, Cost>> {
  const measured = new Map<Costed, Cost>()
  const head = ['call', 'of', ...PARTS, 'all', 'calls/s']
  const rows: string[][] = []
  for (const call of chosen) {
    const samples = systems.map((): Cost[] => [])
    const needsWarmUp = !call.isAtRest && call.seconds === undefined
    if (needsWarmUp) for (const system of systems) await costOf(system, call, WARM_UP_S)
    for (let round = 0; round < rounds && !keeper.closing; round++) {
      // In turn first: a later measurement of a round reads some 5 % higher.
      for (const turn of systems.keys()) {
        const index = (turn + round) % systems.length
        const system = systems[index]
        if (system !== undefined) samples[index]?.push(await costOf(system, call, call.seconds ?? seconds))
      }
    }
    const [own, ...others] = samples.map(meanOf)
    if (own === undefined) continue
    measured.set(call, own)
    rows.push([call.title, 'this', ...cells(own)])
    for (const [index, other] of others.entries()) {
      const name = names[index + 1] ?? ''
      rows.push(['', name, ...cells(other)], ['', `of ${name}`, ...ratios(own, other)])
    }
  }
  console.log(markdownTable([head, ...rows], { align: ['l', 'l', 'r', 'r', 'r', 'r', 'r', 'r'] }))
  return measured
}

/** The processor time of a held login, without its hash. */
async function keepForSizing(measured: ReadonlyMap<Costed, Cost>): Promise<void> {
  const [, cost] = [...measured].find(([{ name }]) => name === 'login') ?? []
  if (cost === undefined) throw new UserError('--size needs the call "login".')
  const file = join(repositoryDir, 'infra/sizing/figures.json')
  const costMs = Object.fromEntries(PARTS.map((part) => [part, Number(cost[part].toFixed(3))]))
  const figures: object = JSON.parse(await readFile(file, 'utf8'))
  await writeFile(file, `${JSON.stringify({ ...figures, costMs }, undefined, 2)}\n`)
}

/** What a call costs each part, in milliseconds, while as many as its callers are in flight. */
async function costOf(system: CostSystem, call: Costed, seconds: number): Promise<Cost> {
  const calls = await Promise.all(Array.from({ length: call.callers }, () => call.open(system)))
  let done = 0
  const running = call.at === undefined ? system : await system[call.at]()
  const { parts, seconds: took } = await processorTimeOf(running, system.servers, async () => {
    const endMs = performance.now() + seconds * 1_000
    const repeat = async (once: () => Promise<void>) => {
      while (performance.now() < endMs) {
        await once()
        done++
      }
    }
    await Promise.all(calls.map(repeat))
  })
  const each = (role?: string) =>
    parts
      .filter((part) => role === undefined || part.role === role)
      // The kernel charges processes by its tick, which misses the short wake-ups of a process at rest.
      .reduce((sum, part) => sum + (call.isAtRest ? part.eventLoopMs : part.totalMs), 0) / done
  return {
    gateway: each('gateway'),
    worker: each('worker'),
    postgres: each('postgres'),
    redis: each('redis'),
    all: each(),
    perSecond: done / took,
  }
}

/** The mean of all calls of all rounds. Many short rounds compare a system with itself to 2 % beside other work, a few long ones to 15 %. */
function meanOf(costs: readonly Cost[]): Cost {
  // Rounds are equally long, so the rate is the number of calls.
  const calls = costs.reduce((sum, { perSecond }) => sum + perSecond, 0)
  const mean = (name: keyof Cost) => costs.reduce((sum, cost) => sum + cost[name] * cost.perSecond, 0) / calls
  return {
    gateway: mean('gateway'),
    worker: mean('worker'),
    postgres: mean('postgres'),
    redis: mean('redis'),
    all: mean('all'),
    perSecond: calls / costs.length,
  }
}

function cells(cost: Cost): string[] {
  return [...[...PARTS, 'all' as const].map((name) => cost[name].toFixed(3)), cost.perSecond.toFixed(1)]
}

function ratios(now: Cost, before: Cost): string[] {
  return [...PARTS, 'all' as const, 'perSecond' as const].map((name) => {
    const ratio = now[name] / before[name]
    return Number.isFinite(ratio) ? ratio.toFixed(2) : ''
  })
}

// The floor: bare parts that do what a login cannot do without (measure/floor-program.ts), on the services of a system.

/** It can log in and answer /healthz; the system's services stay the caller's. */
async function openFloor(keeper: Keeper, beside: CostSystem): Promise<CostSystem> {
  const { databaseUrl, redisUrl } = beside.services
  const entry = compiled('measure/floor-program')
  const prefix = `{floor-${randomBytes(6).toString('hex')}}`
  const start = (role: string) => startProcess({ entry, keeper, args: [role, databaseUrl, redisUrl, prefix] })
  const [gateway, worker] = [start('gateway'), start('worker')]
  const close = async () => void (await Promise.all([gateway.close(), worker.close()]))
  try {
    const { msg: url = '' } = await gateway.waitForLog(({ msg = '' }) => msg.startsWith('http'))
    await worker.waitForLog(({ msg }) => msg === 'ready')
    const parts = [
      { role: 'gateway', pid: gateway.pid },
      { role: 'worker', pid: worker.pid },
    ]
    return { ...beside, api: createApiClient(url), parts, close }
  } catch (error) {
    await close()
    throw error
  }
}
