// The environment of local commands, and where the gateway and the worker of a start listen.
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { UserError } from '../processes/command-line.ts'
import { whyNotListen } from '../processes/port.ts'
import { defaultStateDir, repositoryDir } from '../processes/repository.ts'
import { isHeld } from './lock.ts'

/** Ports by the variables that set them; 0 is any free port. */
export interface Ports {
  OPS_PORT: string
  PORT?: string
  SERVICE_PORT?: string
}

/** Throws a UserError if a port is taken. */
export async function choosePorts({ port, opsPort, servicePort }: LocalEnvironment) {
  const choose = async (variable: string, wanted: number): Promise<string> => {
    // A port found free now may be taken by the time its member listens.
    const code = wanted === 0 ? undefined : await whyNotListen(wanted, '127.0.0.1')
    if (code === undefined) return String(wanted)
    const why = code === 'EADDRINUSE' ? 'is taken: stop what listens there, or' : `cannot be listened on (${code}):`
    throw new UserError(`Port ${wanted} ${why} set ${variable} to another.`)
  }
  const gateway: Ports = {
    PORT: await choose('PORT', port),
    OPS_PORT: await choose('OPS_PORT', opsPort),
    ...(servicePort !== undefined && { SERVICE_PORT: await choose('SERVICE_PORT', servicePort) }),
  }
  const worker: Ports = { OPS_PORT: await choose('OPS_PORT', opsPort && opsPort + 1) }
  return { gateway, worker }
}

/** The ports in a member's ready line. */
export function portsIn(member: { url?: string; opsUrl: string; serviceUrl?: string | undefined }): Ports {
  // URL omits the default port of the scheme.
  const portOf = (url: string): string => new URL(url).port || '80'
  return {
    OPS_PORT: portOf(member.opsUrl),
    ...(member.url !== undefined && { PORT: portOf(member.url) }),
    ...(member.serviceUrl !== undefined && { SERVICE_PORT: portOf(member.serviceUrl) }),
  }
}

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
/** In the state folder while all is up: the URL of the database. */
export const DATABASE_FILE = 'database-url'

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
