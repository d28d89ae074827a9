// `pnpm load`: runs the load tests that were asked for, and writes their results and a report; or a
// spike on a gateway that runs already.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { startOwnServices } from '@spillway/infra/harness/services'
import { runCommand } from '@spillway/infra/processes/command'
import { parseCommandLine, pickNamed, positive, UserError, whole } from '@spillway/infra/processes/command-line'
import { moveTo } from '@spillway/infra/processes/cores'
import { Keeper } from '@spillway/infra/processes/keeper'
import { findPids } from '@spillway/infra/processes/process-table'
import { defaultStateDir } from '@spillway/infra/processes/repository'
import { seeded } from '@spillway/infra/services/query'
import { buildEngine, hasEngine } from '@spillway/infra/start/build'
import { contenderCores, generatorCores } from '../contenders/contender.ts'
import { contenders } from '../contenders/contenders.ts'
import { Accounts } from '../load/accounts.ts'
import { renderReport, tablesInLines } from '../report/report.ts'
import { bareHash } from '../scenarios/bare-hash.ts'
import type { Setting } from '../scenarios/scenario.ts'
import { describeCommit, describeMachine, type Results } from './results.ts'
import { runScenarios, scenarios } from './run.ts'
import { DURATION_MAX_S, inWords, isError, RATE_MAX, resolveTarget, spikeTarget } from './target-spike.ts'

const TARGET_DURATION_S = 10
const WARM_UP_MS = 6_000
const BARE_MS = 1_000

const help = `pnpm load [scenario ...] [--contender name[,name]] [--duration s] [--users n] [--repeat n] [--out file]
pnpm load spike --target url [--rate n] [--duration s] [--users n] [--password p] [--beyond-loopback]

Runs load tests, and writes a report, one HTML page, and beside it the figures of each run as JSON. With --target: a spike of logins
on a gateway that runs already, with the accounts of "pnpm seed".

  --contender a,b   only these architectures [each scenario has its own]
  --duration s      seconds under load, for each measurement
  --users n         how many users there are, where the scenario has a number of them [100 or 5000]
  --repeat n        measures everything n times, in turn; the report shows medians [1]
  --out file        where .html and .json go [.spillway/load/<time>]
  --help            prints this

With --target
  --target url      the gateway; "pnpm start" has it at http://127.0.0.1:3000
  --rate n          people a second, at most ${RATE_MAX} [five times what it is found to do]
  --duration s      seconds in which they come, at most ${DURATION_MAX_S} [${TARGET_DURATION_S}]; those with tickets are waited for
  --users n         how many accounts there are [${seeded.count}]
  --password p      their password ["${seeded.password}"]
  --beyond-loopback lets the target be another machine than this one; only where you may do that

Scenarios
${scenarios.map(({ name, title }) => `  ${name.padEnd(20)}${title}`).join('\n')}

Contenders
${contenders.map(({ name, title }) => `  ${name.padEnd(20)}${title}`).join('\n')}
`

const optionTypes = {
  contender: { type: 'string' },
  duration: { type: 'string' },
  users: { type: 'string' },
  rate: { type: 'string' },
  repeat: { type: 'string' },
  out: { type: 'string' },
  target: { type: 'string' },
  password: { type: 'string' },
  'beyond-loopback': { type: 'boolean' },
} as const

function parse(args: string[]) {
  return parseCommandLine('pnpm load', args, optionTypes, { allowPositionals: true })
}

type Values = ReturnType<typeof parse>['values']

function interruption(): AbortSignal {
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort())
  return interrupted.signal
}

async function load(values: Values, names: readonly string[]): Promise<void> {
  for (const name of ['rate', 'password', 'beyond-loopback'] as const)
    if (values[name] !== undefined) throw new UserError(`--${name} needs a --target: see "pnpm load --help".`)
  const chosen = pickNamed('scenario', scenarios, names)
  const named = values.contender?.split(',').map((name) => name.trim())
  const time = new Date().toISOString()
  const out = resolve(values.out ?? join(defaultStateDir, 'load', time.slice(0, 19).replaceAll(':', '-')))
  const asked = {
    contenders: named && pickNamed('contender', contenders, named).map(({ name }) => name),
    durationS: values.duration === undefined ? undefined : positive('--duration', values.duration),
    users: values.users === undefined ? undefined : whole('--users', values.users),
  }
  const repeat = whole('--repeat', values.repeat ?? '1')
  const signal = interruption()
  // Before anything is started, so that all processes inherit it.
  if (contenderCores !== undefined) moveTo(process.pid, generatorCores)
  console.log('Starting PostgreSQL and Redis ...')
  const keeper = new Keeper()
  const wantsEngine = process.env.HASH_ENGINE !== 'packages'
  if (wantsEngine) await buildEngine(keeper, console.log)
  // The servers of the environment where they are set. Only an embedded one may change cores.
  const [databaseUrl, redisUrl] = [process.env.DATABASE_URL || undefined, process.env.REDIS_URL || undefined]
  const services = await startOwnServices({ keeper, purpose: 'load', databaseUrl, redisUrl })
  try {
    const redisPids = redisUrl === undefined ? findPids('-server', `:${new URL(services.redisUrl).port}`) : []
    for (const pid of redisPids) if (contenderCores !== undefined) moveTo(pid, contenderCores)
    const setting: Setting = {
      databaseUrl: services.databaseUrl,
      redisUrl: services.redisUrl,
      accounts: new Accounts(services.databaseUrl),
      warmUpMs: WARM_UP_MS,
      bareHashMs: {
        bcrypt: (await bareHash('@node-rs/bcrypt', BARE_MS)).medianMs,
        argon2id: (await bareHash('@node-rs/argon2', BARE_MS)).medianMs,
      },
      ...asked,
    }
    const results: Results = {
      startedAt: time,
      interrupted: true,
      machine: describeMachine(wantsEngine && hasEngine() ? 'native' : 'packages'),
      commit: describeCommit(),
      repeat,
      bareHashMs: setting.bareHashMs,
      scenarios: [],
    }
    await runScenarios(chosen, setting, results, signal)
    results.interrupted = signal.aborted
    mkdirSync(dirname(out), { recursive: true })
    // Four digits: more are noise.
    const short = (_: string, value: unknown) => (typeof value === 'number' ? Number(value.toPrecision(4)) : value)
    writeFileSync(`${out}.json`, `${JSON.stringify(results, short)}\n`)
    writeFileSync(`${out}.html`, renderReport(results))
    console.log(`${tablesInLines(results)}\n\nResults  ${out}.json\nReport   ${out}.html`)
  } finally {
    await services.close()
    await keeper.close()
  }
  // The measurement that was broken off would keep this process until it is over.
  if (signal.aborted) process.exit(130)
}

/** A spike on a gateway that runs already: no system of its own, no report; the result in words. */
async function spike(target: string, values: Values, names: readonly string[]): Promise<void> {
  const { contender, repeat, out } = values
  if (names.join() !== 'spike' || [contender, repeat, out].some((value) => value !== undefined))
    throw new UserError(
      '--target is for "pnpm load spike" alone, without contenders and results: see "pnpm load --help".',
    )
  const { isTTY } = process.stdout
  const result = await spikeTarget({
    users: whole('--users', values.users ?? String(seeded.count)),
    password: values.password ?? seeded.password,
    durationS: atMost('--duration', values.duration ?? String(TARGET_DURATION_S), DURATION_MAX_S),
    rate: values.rate === undefined ? undefined : atMost('--rate', values.rate, RATE_MAX),
    url: await resolveTarget(target, values['beyond-loopback'] === true),
    signal: interruption(),
    report: (line) => isTTY && process.stdout.write(`\r\u001b[2K${line}`),
  })
  console.log(`${isTTY ? '\r\u001b[2K' : ''}${inWords(result)}`)
  if (result.visits.some(isError)) process.exitCode = 1
}

function atMost(option: string, text: string, most: number): number {
  const value = positive(option, text)
  if (value <= most) return value
  throw new UserError(`${option} takes at most ${most} with a --target, not "${text}".`)
}

await runCommand(async () => {
  const { values, positionals } = parse(process.argv.slice(2).filter((argument) => argument !== '--'))
  if (values.help) return console.log(help)
  if (values.target !== undefined) return await spike(values.target, values, positionals)
  await load(values, positionals)
})
