// The command `pnpm start`: runs everything on this machine, until Ctrl-C.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runWithKeeper } from '../processes/command.ts'
import { parseCommandLine, UserError } from '../processes/command-line.ts'
import type { Keeper } from '../processes/keeper.ts'
import { startServices } from '../services/services.ts'
import { build, buildEngine, checkPlatform, checkRedis, hasEngine, migrate } from './build.ts'
import { takeLock } from './lock.ts'
import { startBoth } from './member.ts'
import { checkPorts, DATABASE_FILE, readEnvironment } from './places.ts'
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
those are taken. Every other variable reaches the gateway and the worker as it is, such as WORKER_CONCURRENCY or LOG_LEVEL.
`

/** How long to wait for an earlier run that is stopping. */
const closingMs = 3_000

const say = (sentence: string): void => console.log(sentence)

/** @param fail called when all cannot go on */
async function start(isFresh: boolean, keeper: Keeper, fail: (error: unknown) => void): Promise<void> {
  const environment = readEnvironment(process.env)
  const { stateDir } = environment
  if (!(await takeLock(join(stateDir, 'start.lock'), keeper, closingMs))) {
    throw new UserError(`Spillway already runs on ${stateDir}: stop it first, or set SPILLWAY_DIR to another folder.`)
  }
  await checkPorts(environment)
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
    build(keeper, ['@spillway/api', '@spillway/worker']).then(() => checkRedis(environment.redisUrl)),
    wantsEngine && hasEngine() ? buildEngine(keeper, say) : undefined,
  ])
  services.died.then((name) => fail(new UserError(`${name} ended: see its log in ${logDir}.`)), fail)
  const { databaseUrl, redisUrl } = services
  await migrate(keeper, databaseUrl)
  const ports = await startBoth({ keeper, environment, secrets, databaseUrl, redisUrl, logDir, say, fail })
  // For `pnpm seed` and `pnpm accounts`.
  writeFileSync(join(stateDir, DATABASE_FILE), databaseUrl, { mode: 0o600 })
  const { OPS_USER: user = 'operator', OPS_PASSWORD: password = secrets.opsPassword } = environment.inherited
  say(screen({ environment, ports, databaseUrl, redisUrl, logDir }, { user, password }))
  if (!wantsEngine || hasEngine()) return
  // The first build takes a minute: the start does not wait for it.
  if (await buildEngine(keeper, say, { inBackground: true }))
    say('The native hashing engine is built: workers use it from their next start on.')
}

async function main(keeper: Keeper): Promise<void> {
  checkPlatform()
  const { values } = parseCommandLine('pnpm start', process.argv.slice(2), { fresh: { type: 'boolean' } })
  if (values.help) return say(help)
  await new Promise<void>((end, fail) => {
    keeper.onClosing(end)
    start(values.fresh === true, keeper, fail).catch(fail)
  })
}

await runWithKeeper(main, { isEndless: true })
// A step of a start that was stopped may still wait.
process.exit()
