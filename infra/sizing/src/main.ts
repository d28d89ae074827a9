// `pnpm size`: what a hash takes on this machine, and the pods and cores for a load by it.
import { availableParallelism, cpus } from 'node:os'
import { runCommand } from '@spillway/infra/processes/command'
import { parseCommandLine, positive, UserError, whole } from '@spillway/infra/processes/command-line'
import type { HashPolicy } from '@spillway/queue/wire/policy'
import { argon2Setting, bcryptSetting, newArgon2Setting, newBcryptSetting } from '@spillway/queue/wire/setting'
import { Hasher } from '@spillway/worker/hashing/index'
import { asPolicy, LEAST_ARGON2ID } from '@spillway/worker/hashing/policy'
import { PROGRAM_KIB } from '@spillway/worker/hashing/threads'

const help = `pnpm size --logins-per-second N [--spike N] [--worker-cores N]

Measures OWASP's minimums of argon2id, and bcrypt at costs 10 to 12, on this machine, which takes some ten seconds: quiet, of the
kind that workers will run on. Then says how many pods the load needs.

  --logins-per-second N   in the busiest ordinary minute
  --spike N               how many times that a spike is [10]
  --worker-cores N        cores of a worker [1]
  --measured-ms N         an argon2id hash of 19 MiB and 2 passes takes so much processor time: measures nothing
`

/** Processor time of a login beside its hash, in ms, on a Zen 4 core with 100 clients. */
const LOGIN_MS = { gateway: 2.7, worker: 1.6, redis: 0.65, postgres: 0.5 }
/** What of a core is used in the busiest ordinary minute: chance makes queues long beyond it. */
const BUSY = 0.7
/** Of each gateway. */
const CONNECTIONS = 10

/** With one lane, in KiB for 1 to 5 passes: equal in strength, says OWASP's Password Storage Cheat Sheet. */
const OWASP_ARGON2_KIB = [47_104, 19_456, 12_288, 9_216, 7_168] as const
const OWASP_POLICIES: readonly HashPolicy[] = [
  ...OWASP_ARGON2_KIB.map(
    (memoryKib, n) => ({ algorithm: 'argon2id', memoryKib, time: n + 1, parallelism: 1 }) as const,
  ),
  ...[10, 11, 12].map((cost) => ({ algorithm: 'bcrypt', cost }) as const),
]

interface Cost {
  policy: HashPolicy
  /** Processor time of a hash with every core busy and batches full, in milliseconds. */
  hashMs: number
  /** Hashes that a core makes at a time. */
  width: number
}

interface Load {
  loginsPerSecond: number
  spike: number
  workerCores: number
}

await runCommand(async () => {
  const options = {
    'logins-per-second': { type: 'string' },
    spike: { type: 'string', default: '10' },
    'worker-cores': { type: 'string', default: '1' },
    'measured-ms': { type: 'string' },
  } as const
  const { values } = parseCommandLine('pnpm size', process.argv.slice(2), options)
  if (values.help) return console.log(help)
  const rate = values['logins-per-second']
  if (rate === undefined) throw new UserError('pnpm size needs --logins-per-second: see "pnpm size --help".')
  const load = {
    loginsPerSecond: positive('--logins-per-second', rate),
    spike: positive('--spike', values.spike),
    workerCores: whole('--worker-cores', values['worker-cores']),
  }
  const given = values['measured-ms']
  if (given !== undefined) {
    const costs = [{ policy: LEAST_ARGON2ID, hashMs: positive('--measured-ms', given), width: 1 }]
    return console.log(describe(costs, load).join('\n'))
  }
  const { costs, engine } = await measure()
  const [processor] = cpus()
  console.log(`${availableParallelism()} × ${processor?.model ?? 'processor'}, Node ${process.version}, ${engine}\n`)
  console.log(describe(costs, load).join('\n'))
})

/** Processor time: others on the machine disturb it less than the duration. */
async function measure(): Promise<{ costs: Cost[]; engine: string }> {
  const slots = availableParallelism()
  const hasher = await Hasher.load(asPolicy(LEAST_ARGON2ID), { native: process.env.HASH_ENGINE !== 'packages', slots })
  /** Enough for full batches. */
  const atOnce = 16 * slots
  const hashAll = (policy: HashPolicy) =>
    Promise.all(Array.from({ length: atOnce }, () => hasher.dummy('a password', policy)))
  const costs: Cost[] = []
  try {
    for (const policy of OWASP_POLICIES) {
      // The first batches map memory, and show the engine the best width.
      await hashAll(policy)
      const samples: number[] = []
      // A dear cost takes longer, and is the mean of as many hashes.
      for (const endsAt = performance.now() + 600; samples.length === 0 || performance.now() < endsAt; ) {
        const before = process.cpuUsage()
        await hashAll(policy)
        const { user, system } = process.cpuUsage(before)
        samples.push((user + system) / 1_000 / atOnce)
      }
      costs.push({
        policy,
        hashMs: samples.sort((a, b) => a - b)[samples.length >> 1] ?? Number.NaN,
        width: hasher.native?.widthOf(settingOf(policy)) ?? 1,
      })
    }
    return { costs, engine: hasher.engines.argon2 ?? 'unknown engine' }
  } finally {
    hasher.native?.close()
  }
}

function settingOf(policy: HashPolicy): string {
  return policy.algorithm === 'bcrypt'
    ? bcryptSetting(newBcryptSetting(policy.cost))
    : argon2Setting(newArgon2Setting(policy))
}

/** A line for each cost, then what no cost changes. */
function describe(costs: readonly Cost[], load: Load): string[] {
  const { loginsPerSecond, spike, workerCores } = load
  const spikePerSecond = loginsPerSecond * spike
  const rows = costs.map((cost) => rowOf(cost, load))
  const cores = workerCores === 1 ? '1 core' : `${workerCores} cores`
  const heads = ['new hashes', 'a hash', 'a core', 'workers', 'in the spike', 'memory of a worker']
  const gateways = Math.max(2, Math.ceil((spikePerSecond * LOGIN_MS.gateway) / 1_000 / BUSY))
  const redisShare = (spikePerSecond * LOGIN_MS.redis) / 1_000
  const postgresCores = (spikePerSecond * LOGIN_MS.postgres) / 1_000 / BUSY
  return [
    `${loginsPerSecond} logins a second, ${spikePerSecond} in a spike; workers of ${cores}:`,
    '',
    ...inColumns([heads, ...rows]),
    '',
    `gateways     ${gateways} of 1 core`,
    `PostgreSQL   ${postgresCores.toFixed(1)} cores, ${gateways * CONNECTIONS} connections`,
    `Redis        ${(100 * redisShare).toFixed(0)} % of the one core that it uses`,
    ...(redisShare > BUSY
      ? ['', 'One Redis server does not carry this spike: divide the users among cells (infra/helm/CELLS.md).']
      : []),
    '',
    'autoscaling.minReplicas: workers',
    'autoscaling.maxReplicas: workers in the spike',
    `worker.cores: ${workerCores}`,
    `gateway.replicas: ${gateways}`,
  ]
}

function rowOf({ policy, hashMs, width }: Cost, { loginsPerSecond, spike, workerCores }: Load): string[] {
  const loginMs = hashMs + LOGIN_MS.worker
  const workersAt = (perSecond: number, busy: number) => Math.ceil((perSecond * loginMs) / 1_000 / busy / workerCores)
  const memoryKib = policy.algorithm === 'argon2id' ? policy.memoryKib : 0
  // As a worker shares it out: for each core, and for what packages hash.
  const workerMib = Math.ceil((PROGRAM_KIB + (workerCores + 1) * width * memoryKib) / 1_024)
  return [
    inWords(policy),
    `${hashMs.toFixed(1)} ms`,
    `${(1_000 / loginMs).toFixed(0)}/s`,
    String(workersAt(loginsPerSecond, BUSY)),
    String(workersAt(loginsPerSecond * spike, 1)),
    `${workerMib} MiB`,
  ]
}

function inWords(policy: HashPolicy): string {
  if (policy.algorithm === 'bcrypt') return `bcrypt, cost ${policy.cost}`
  return `argon2id, ${policy.memoryKib / 1_024} MiB, ${policy.time === 1 ? '1 pass' : `${policy.time} passes`}`
}

function inColumns(rows: readonly (readonly string[])[]): string[] {
  const widthOf = (column: number) => Math.max(...rows.map((row) => row[column]?.length ?? 0))
  return rows.map((row) =>
    row.map((cell, n) => (n === 0 ? cell.padEnd(widthOf(n)) : cell.padStart(widthOf(n)))).join('  '),
  )
}
