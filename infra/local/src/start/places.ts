// The environment of local commands, the addresses of gateways and workers, and of a running start.
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { UserError } from '../processes/command-line.ts'
import { whyNotListen } from '../processes/port.ts'
import { defaultStateDir, repositoryDir } from '../processes/repository.ts'
import { isHeld } from './lock.ts'

/** A gateway or worker, and its ports by the variables that set them; 0 is any free port. */
export interface Place {
  name: string
  ports: { OPS_PORT: string; PORT?: string; SERVICE_PORT?: string }
}

/** Assigns ports, or 0, to every member. Throws a UserError if one is taken. */
export async function choosePlaces(
  { host, port, opsPort, servicePort }: LocalEnvironment,
  count: { gateways: number; workers: number },
) {
  const choose = async (variable: string, listenOn: string, first: number, index: number): Promise<string> => {
    // A port found free now may be taken by the time its member listens.
    if (first === 0) return '0'
    const wanted = first + index
    const code = await whyNotListen(wanted, listenOn)
    if (code === undefined) return String(wanted)
    throw new UserError(
      code === 'EADDRINUSE'
        ? `Port ${wanted} is taken: stop what listens there, or set ${variable} to the first of some free ports.`
        : `${listenOn} port ${wanted} cannot be listened on (${code}): set ${variable} or HOST to what this machine has.`,
    )
  }
  const ops = (index: number) => choose('OPS_PORT', '127.0.0.1', opsPort, index)
  const places = (kind: string, number: number, portsOf: (index: number) => Promise<Place['ports']>) =>
    Promise.all(
      Array.from({ length: number }, async (_, index) => ({
        name: `${kind} ${index + 1}`,
        ports: await portsOf(index),
      })),
    )
  const gateways = await places('gateway', count.gateways, async (index) => ({
    PORT: await choose('PORT', host, port, index),
    OPS_PORT: await ops(index),
    ...(servicePort !== undefined && { SERVICE_PORT: await choose('SERVICE_PORT', '127.0.0.1', servicePort, index) }),
  }))
  const workers = await places('worker', count.workers, async (index) => ({
    OPS_PORT: await ops(count.gateways + index),
  }))
  return { gateways, workers }
}

/** The host by which clients on this machine reach a server that listens on `host`. */
export function hostToDial(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}

/** The ports in a member's ready line. */
export function portsIn(member: { url?: string; opsUrl: string; serviceUrl?: string | undefined }): Place['ports'] {
  // URL omits the default port of the scheme.
  const portOf = (url: string): string => new URL(url).port || '80'
  return {
    OPS_PORT: portOf(member.opsUrl),
    ...(member.url !== undefined && { PORT: portOf(member.url) }),
    ...(member.serviceUrl !== undefined && { SERVICE_PORT: portOf(member.serviceUrl) }),
  }
}

/**
 * Where the running `pnpm start` is.
 * @param otherwise the end of the error where nothing runs: what to set instead
 */
export function findRunning(stateDir: string, otherwise: string) {
  if (!isHeld(join(stateDir, 'start.lock')))
    throw new UserError(`Nothing runs here: run "pnpm start" first, or ${otherwise}.`)
  try {
    const running: Record<'databaseUrl' | 'redisUrl' | 'gatewayUrl' | 'opsUrl', string> = JSON.parse(
      readFileSync(join(stateDir, 'running.json'), 'utf8'),
    )
    return running
  } catch (cause) {
    throw new UserError('"pnpm start" is not ready yet: wait until it has printed where things listen.', { cause })
  }
}

export type LocalEnvironment = ReturnType<typeof readEnvironment>

/** Throws a UserError that names an invalid variable. An empty variable counts as unset. */
export function readEnvironment(env: NodeJS.ProcessEnv) {
  return {
    /** The first gateway's ports; 0 for any free ones. */
    port: port(env, 'PORT', 3000),
    opsPort: port(env, 'OPS_PORT', 9464),
    /** Undefined unless the service API is on. */
    servicePort: env.SERVICE_KEYS || env.SERVICE_KEYS_FILE ? port(env, 'SERVICE_PORT', 3100) : undefined,
    /** The interface on which gateways listen. */
    host: (env.HOST || '127.0.0.1').replace(/^\[(.*)\]$/, '$1'),
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
