// The command `pnpm start`: runs everything on this machine, until Ctrl-C.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onLauncherGone, runCommand } from '../processes/command.ts'
import { parseCommandLine, report, UserError } from '../processes/command-line.ts'
import { Keeper } from '../processes/keeper.ts'
import { startServices } from '../services/services.ts'
import { build, buildEngine, checkPlatform, hasEngine, migrate } from './build.ts'
import { takeLock } from './lock.ts'
import { expectReadyLines, startBoth } from './member.ts'
import { choosePorts, DATABASE_FILE, readEnvironment } from './places.ts'
import { screen } from './screen.ts'
import { loadSecrets } from './secrets.ts'

const help = `pnpm start [--fresh]

Starts PostgreSQL, Redis, a gateway and a worker on this machine, and prints where each thing listens. Ctrl-C ends it all.

  --fresh        deletes what earlier runs left in SPILLWAY_DIR first: accounts, jobs, logs and secrets
  --help         prints this

From the environment:

  PORT           of the gateway [3000]; 0: any free one
  OPS_PORT       of the gateway's ops port [9464]; the worker gets the next one
  DATABASE_URL   the URL of the PostgreSQL server [an embedded server]
  REDIS_URL      the URL of the Redis server [an embedded server]
  SPILLWAY_DIR   where data, logs and secrets are kept [.spillway]

The embedded PostgreSQL listens on port 15432 and Redis on 16379 of the loopback interface, or on any free port where
those are taken. Every other variable reaches the gateway and the worker as it is, such as WORKER_CONCURRENCY or LOG_LEVEL
(info, debug or trace).
`

/** How long to wait for an earlier run that is stopping. */
const closingMs = 3_000

const LAST_LINES_MS = 1_000

const say = (sentence: string): void => console.log(sentence)

async function start(isFresh: boolean, keeper: Keeper, fail: (error: unknown) => void): Promise<void> {
  const environment = readEnvironment(process.env)
  expectReadyLines(environment.inherited)
  const { stateDir } = environment
  if (!(await takeLock(join(stateDir, 'start.lock'), keeper, closingMs))) {
    throw new UserError(`Spillway already runs on ${stateDir}: stop it first, or set SPILLWAY_DIR to another folder.`)
  }
  const wanted = await choosePorts(environment)
  const old = ['logs', DATABASE_FILE, ...(isFresh ? ['postgres', 'redis', 'secrets.json'] : [])]
  for (const name of old) rmSync(join(stateDir, name), { recursive: true, force: true })
  const secrets = loadSecrets(stateDir)
  const logDir = join(stateDir, 'logs')
  const wantsEngine = environment.inherited.HASH_ENGINE !== 'packages'
  const [services] = await Promise.all([
    startServices({
      ...environment,
      keeper,
      dir: stateDir,
      password: secrets.servicesPassword,
      durable: true,
      preferredPorts: { postgres: 15_432, redis: 16_379 },
      say,
    }),
    build(keeper, ['@spillway/api', '@spillway/worker']),
    wantsEngine && hasEngine() ? buildEngine(keeper, say) : undefined,
  ])
  services.died.then((name) => fail(new UserError(`${name} ended: see its log in ${logDir}.`)), fail)
  const { databaseUrl, redisUrl } = services
  await migrate(keeper, databaseUrl)
  const members = { keeper, environment, secrets, databaseUrl, redisUrl, logDir, say, fail }
  const taken = await startBoth({ ...wanted, ...members })
  // For `pnpm seed` and `pnpm accounts`.
  writeFileSync(join(stateDir, DATABASE_FILE), databaseUrl, { mode: 0o600 })
  const { OPS_USER: user = 'operator', OPS_PASSWORD: password = secrets.opsPassword } = environment.inherited
  say(screen({ ...members, ...taken }, { user, password }))
  if (!wantsEngine || hasEngine()) return
  // The first build takes a minute: the start does not wait for it.
  if (await buildEngine(keeper, say, { inBackground: true }))
    say('The native hashing engine is built: workers use it from their next start on.')
}

async function main(): Promise<void> {
  checkPlatform()
  const { values } = parseCommandLine('pnpm start', process.argv.slice(2), { fresh: { type: 'boolean' } })
  if (values.help) return say(help)
  const keeper = new Keeper()
  const stop = (code: number): void => {
    if (keeper.closing) return
    process.exitCode = code
    // The last log lines of members are written before it ends by itself; a start may still wait.
    const exit = () => setTimeout(() => process.exit(), LAST_LINES_MS).unref()
    keeper.close().then(exit, exit)
  }
  const fail = (error: unknown): void => {
    if (keeper.closing) return
    report(error)
    stop(1)
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (!keeper.closing) say('Stopping ...')
      stop(0)
    })
  }
  onLauncherGone(() => stop(1))
  process.stderr.on('error', goOn)
  await start(values.fresh === true, keeper, fail).catch(fail)
}

/** The terminal may close before this process ends. Unlike other commands, this one then ends its processes first. */
function goOn(): void {}

await runCommand(main, goOn)
