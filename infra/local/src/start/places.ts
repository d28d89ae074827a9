// The environment of local commands, and where the gateway and the worker of a start listen.
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { UserError } from '../processes/command-line.ts'
import { freePort, whyNotListen } from '../processes/port.ts'
import { defaultStateDir, repositoryDir } from '../processes/repository.ts'
import { isHeld } from './lock.ts'

export type LocalEnvironment = ReturnType<typeof readEnvironment>

/** Throws a UserError that names an invalid variable. An empty variable counts as unset. */
export function readEnvironment(env: NodeJS.ProcessEnv) {
  return {
    /** Of the gateway; 0 for a free one. */
    port: port(env, 'PORT', 3000),
    /** Of the gateway; the worker gets the next one. */
    opsPort: port(env, 'OPS_PORT', 9464),
    /** Undefined unless the service API is on. */
    servicePort: env.SERVICE_KEYS || env.SERVICE_KEYS_FILE ? port(env, 'SERVICE_PORT', 3100) : undefined,
    databaseUrl: env.DATABASE_URL || undefined,
    redisUrl: env.REDIS_URL || undefined,
    stateDir: env.SPILLWAY_DIR ? resolve(repositoryDir, env.SPILLWAY_DIR) : defaultStateDir,
    inherited: env,
  }
}

function port(env: NodeJS.ProcessEnv, name: string, byDefault: number): number {
  const text = env[name]
  if (!text) return byDefault
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw new UserError(`${name} must be a port from 0 to 65535, not "${text}".`)
}

/** Throws a UserError if a port is taken. */
export async function checkPorts({ port, opsPort, servicePort = 0 }: LocalEnvironment): Promise<void> {
  const opsPorts = opsPort === 0 ? [] : [opsPort, opsPort + 1]
  const wanted = { PORT: [port], OPS_PORT: opsPorts, SERVICE_PORT: [servicePort] }
  for (const [variable, numbers] of Object.entries(wanted))
    for (const number of numbers) {
      const code = number === 0 ? undefined : await whyNotListen(number, '127.0.0.1')
      if (code === undefined) continue
      const why = code === 'EADDRINUSE' ? 'is taken: stop what listens there, or' : `cannot be listened on (${code}):`
      throw new UserError(`Port ${number} ${why} set ${variable} to another.`)
    }
}

export type Ports = Awaited<ReturnType<typeof choosePorts>>

/** Finds free ports for those that are 0: another process may take them until they are used. */
export async function choosePorts({ port, opsPort, servicePort }: LocalEnvironment) {
  return {
    port: port || (await freePort()),
    opsPort: opsPort || (await freePort()),
    workerOpsPort: opsPort ? opsPort + 1 : await freePort(),
    servicePort: servicePort === 0 ? await freePort() : servicePort,
  }
}

/** In the state folder while all is up: the URL of the database. */
export const DATABASE_FILE = 'database-url'

/** The database of the running `pnpm start`. */
export function runningDatabase(stateDir: string): string {
  if (!isHeld(join(stateDir, 'start.lock')))
    throw new UserError('Nothing runs here: run "pnpm start" first, or set DATABASE_URL.')
  try {
    return readFileSync(join(stateDir, DATABASE_FILE), 'utf8')
  } catch (cause) {
    throw new UserError('"pnpm start" is not ready yet: wait until it has printed where things listen.', { cause })
  }
}
