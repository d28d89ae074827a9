// The command `pnpm start`: runs everything on this machine, until Ctrl-C.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onLauncherGone, runCommand } from '../processes/command.ts'
import { report, UserError } from '../processes/command-line.ts'
import { Keeper } from '../processes/keeper.ts'
import { startServices } from '../services/services.ts'
import { build, buildEngine, checkPlatform, hasEngine, migrate } from './build.ts'
import { takeLock } from './lock.ts'
import { expectReadyLines, startCluster } from './member.ts'
import { help, parseOptions, type StartOptions } from './options.ts'
import { choosePlaces, hostToDial, readEnvironment } from './places.ts'
import { evictionNotice, screen } from './screen.ts'
import { loadSecrets } from './secrets.ts'

/** How long to wait for an earlier run that is stopping. */
const closingMs = 3_000

const LAST_LINES_MS = 1_000

const say = (sentence: string): void => console.log(sentence)

async function start(options: StartOptions, keeper: Keeper, fail: (error: unknown) => void): Promise<void> {
  const environment = readEnvironment(process.env)
  expectReadyLines(environment.inherited)
  const { stateDir } = environment
  if (!(await takeLock(join(stateDir, 'start.lock'), keeper, closingMs))) {
    throw new UserError(`Spillway already runs on ${stateDir}: stop it first, or set SPILLWAY_DIR to another folder.`)
  }
  const wanted = await choosePlaces(environment, options)
  if (options.fresh) forget(stateDir)
  const secrets = loadSecrets(stateDir)
  const logDir = join(stateDir, 'logs')
  const running = join(stateDir, 'running.json')
  for (const old of [logDir, running]) rmSync(old, { recursive: true, force: true })
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
  const { renewWorkers, ...places } = await startCluster({ ...wanted, ...members })
  const { PORT, OPS_PORT } = places.gateways[0]?.ports ?? {}
  const [gatewayUrl, opsUrl] = [`http://${hostToDial(environment.host)}:${PORT}`, `http://127.0.0.1:${OPS_PORT}`]
  // For `pnpm seed` and `pnpm accounts`.
  writeFileSync(running, JSON.stringify({ databaseUrl, gatewayUrl, opsUrl }), { mode: 0o600 })
  const { OPS_USER: user = 'operator', OPS_PASSWORD: password = secrets.opsPassword } = environment.inherited
  say(screen({ ...members, ...places }, { user, password }))
  const notice = await evictionNotice(opsUrl)
  if (notice !== '') say(notice)
  if (!wantsEngine || hasEngine()) return
  // The first build takes a minute: the start does not wait for it.
  if (!(await buildEngine(keeper, say, { inBackground: true }))) return
  await renewWorkers()
  if (!keeper.closing) say('The native hashing engine is built, and has taken over from the packages.')
}

function forget(stateDir: string): void {
  for (const name of ['postgres', 'redis', 'secrets.json'])
    rmSync(join(stateDir, name), { recursive: true, force: true })
}

async function main(): Promise<void> {
  checkPlatform()
  const options = parseOptions(process.argv.slice(2))
  if (options.help) return say(help)
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
  // The terminal may close before this process ends.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  await start(options, keeper, fail).catch(fail)
}

await runCommand(main)
