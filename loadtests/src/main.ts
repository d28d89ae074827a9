// `pnpm load`: runs the load tests that were asked for, and writes their results and a report.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { runCommand } from '@spillway/infra/processes/command'
import { Keeper } from '@spillway/infra/processes/keeper'
import { moveTo } from '@spillway/infra/processes/processor-time'
import { startOwnServices } from '@spillway/infra/rig/services'
import { buildEngine, hasEngine } from '@spillway/infra/start/build'
import { contenderCores, generatorCores, serverProcesses } from '../contenders/contender.ts'
import { Accounts, type WarmUp } from '../load/accounts.ts'
import { renderReport, tablesInLines } from '../report/report.ts'
import { bareHash } from '../scenarios/bare-hash.ts'
import { stormCommand } from '../storm/src/command.ts'
import { help, type LoadOptions, parseOptions } from './options.ts'
import {
  defaultResultsFile,
  describeCommit,
  describeMachine,
  type Results,
  readResults,
  withoutOtherCurves,
  writeResults,
} from './results.ts'
import { runScenarios } from './run.ts'
import { ended, inWords, resolveTarget, spikeTarget } from './target-spike.ts'

const BARE_MS = 1_000
/** After so many logins the gateway's processor time a login no longer falls. */
const WARM_UP: WarmUp = { logins: 4_000, atMostMs: 6_000 }

function interruption(): AbortSignal {
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort())
  return interrupted.signal
}

async function load(options: LoadOptions, file: string): Promise<Results> {
  const signal = interruption()
  const cores = contenderCores
  // Before anything is started, so that all processes inherit it.
  if (cores !== undefined) moveTo(process.pid, generatorCores)
  console.log('Starting PostgreSQL and Redis ...')
  const keeper = new Keeper()
  const wantsEngine = process.env.HASH_ENGINE !== 'packages'
  if (wantsEngine) await buildEngine(keeper, console.log)
  const machine = describeMachine(wantsEngine && hasEngine() ? 'native' : 'packages')
  // The servers of the environment where they are set. Only embedded ones may change cores.
  const [databaseUrl, redisUrl] = [process.env.DATABASE_URL || undefined, process.env.REDIS_URL || undefined]
  const isEmbedded = databaseUrl === undefined && redisUrl === undefined
  let closeServices = async () => {}
  try {
    const services = await startOwnServices({ keeper, purpose: 'load', databaseUrl, redisUrl })
    closeServices = services.close
    const setting = {
      ...options,
      services,
      servers: isEmbedded ? serverProcesses(services) : [],
      cores,
      accounts: new Accounts(services.databaseUrl),
      warmUp: WARM_UP,
      bareHashMs: {
        bcrypt: (await bareHash('@node-rs/bcrypt', BARE_MS, cores)).medianMs,
        argon2id: (await bareHash('@node-rs/argon2', BARE_MS, cores)).medianMs,
      },
    }
    const results: Results = {
      format: 2,
      startedAt: new Date().toISOString(),
      interrupted: true,
      machine,
      commit: describeCommit(),
      settings: {
        repeat: options.repeat,
        warmUpLogins: WARM_UP.logins,
        warmUpAtMostS: WARM_UP.atMostMs / 1_000,
        contenders: options.contenders.map(({ name }) => name).join(', '),
        bcryptBareMs: setting.bareHashMs.bcrypt,
        argon2idBareMs: setting.bareHashMs.argon2id,
        ...(options.durationS !== undefined && { durationS: options.durationS }),
        ...(options.users !== undefined && { users: options.users }),
        ...(options.rate !== undefined && { rate: options.rate }),
      },
      scenarios: [],
    }
    await runScenarios({
      ...options,
      setting,
      say: console.log,
      signal,
      keep: (scenarios) => writeResults(file, Object.assign(results, { scenarios })),
    })
    results.interrupted = signal.aborted
    results.scenarios = results.scenarios.map(withoutOtherCurves)
    writeResults(file, results)
    return results
  } finally {
    await closeServices()
    await keeper.close()
  }
}

/** A spike on a gateway that runs already: no system of its own, no report; the result in words. */
async function spike({ beyondLoopback, ...options }: NonNullable<LoadOptions['target']>): Promise<void> {
  const signal = interruption()
  const url = await resolveTarget(options.url, beyondLoopback)
  const { isTTY } = process.stdout
  const report = (line: string) => isTTY && process.stdout.write(`\r\u001b[2K${line}`)
  const result = await spikeTarget({ ...options, url, signal, report })
  console.log(`${isTTY ? '\r\u001b[2K' : ''}${inWords(result)}`)
  if (ended(result, 'error', 'unknown').length > 0) process.exitCode = 1
}

await runCommand(async () => {
  const args = process.argv.slice(2).filter((argument) => argument !== '--')
  if (args[0] === 'storm') {
    process.exitCode = await stormCommand(args.slice(1), 'pnpm load storm')
    return
  }
  const options = parseOptions(args)
  if (options.help) return console.log(help)
  if (options.target) return await spike(options.target)
  const file = resolve(options.from ?? options.json ?? defaultResultsFile())
  mkdirSync(dirname(file), { recursive: true })
  const results = options.from === undefined ? await load(options, file) : readResults(options.from)
  const report = `${file.replace(/\.json$/, '')}.html`
  writeFileSync(report, renderReport(results))
  console.log(`${tablesInLines(results)}\n`)
  console.log(`${options.from === undefined ? `Results  ${file}\n` : ''}Report   ${report}`)
  // The measurement that was broken off would keep this process until it is over.
  if (results.interrupted && options.from === undefined) process.exit(130)
})
