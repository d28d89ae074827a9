// The environment of local commands, the addresses of gateways and workers, and of a running start.
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { UserError } from '../processes/command-line.ts'
import { whyNotListen } from '../processes/port.ts'
import { defaultStateDir, repositoryDir } from '../processes/repository.ts'
import { isHeld } from './lock.ts'

/** The ports of a gateway or worker; 0 is any free port. A worker has only an ops port. */
export interface Place {
  name: string
  opsPort: number
  port?: number
  /** Of the service API, if that is on. */
  servicePort?: number
}

/** Assigns ports, or 0, to every member. Throws a UserError if one is taken. */
export async function choosePlaces(
  { host, port, opsPort, servicePort }: LocalEnvironment,
  count: { gateways: number; workers: number },
): Promise<{ gateways: Place[]; workers: Place[] }> {
  const choose = async (variable: string, listenOn: string, first: number, index: number): Promise<number> => {
    // A port found free now may be taken by the time its member listens.
    if (first === 0) return 0
    const wanted = first + index
    const code = await whyNotListen(wanted, listenOn)
    if (code === undefined) return wanted
    if (code === 'EADDRINUSE') {
      throw new UserError(
        `Port ${wanted} is taken: stop what listens there, or set ${variable} to the first of some free ports.`,
      )
    }
    throw new UserError(
      `${listenOn} port ${wanted} cannot be listened on (${code}): set ${variable} or HOST to what this machine has.`,
    )
  }
  const places = <P>(number: number, placeOf: (index: number) => Promise<P>): Promise<P[]> =>
    Promise.all(Array.from({ length: number }, (_, index) => placeOf(index)))
  const ops = (index: number): Promise<number> => choose('OPS_PORT', '127.0.0.1', opsPort, index)
  return {
    gateways: await places(count.gateways, async (index) => ({
      name: `gateway ${index + 1}`,
      port: await choose('PORT', host, port, index),
      opsPort: await ops(index),
      ...(servicePort !== undefined && {
        servicePort: await choose('SERVICE_PORT', '127.0.0.1', servicePort, index),
      }),
    })),
    workers: await places(count.workers, async (index) => ({
      name: `worker ${index + 1}`,
      opsPort: await ops(count.gateways + index),
    })),
  }
}

/** The host by which clients on this machine reach a server that listens on `host`. */
export function hostToDial(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}

interface Addresses {
  url?: string | undefined
  opsUrl: string
  serviceUrl?: string | undefined
}

export function placeIn({ url, opsUrl, serviceUrl }: Addresses, name: string): Place {
  // URL omits the default port of the scheme.
  const portOf = (url: string): number => Number(new URL(url).port || 80)
  return {
    name,
    opsPort: portOf(opsUrl),
    ...(url !== undefined && { port: portOf(url) }),
    ...(serviceUrl !== undefined && { servicePort: portOf(serviceUrl) }),
  }
}

export function toVariables({ port, opsPort, servicePort }: Omit<Place, 'name'>): NodeJS.ProcessEnv {
  return {
    OPS_PORT: String(opsPort),
    ...(port !== undefined && { PORT: String(port) }),
    ...(servicePort !== undefined && { SERVICE_PORT: String(servicePort) }),
  }
}

interface RunningUrls {
  databaseUrl: string
  gatewayUrl: string
  opsUrl: string
}

/** @param otherwise the end of the error where nothing runs: what to set instead */
export function findRunning(stateDir: string, otherwise: string): RunningUrls {
  if (!isHeld(join(stateDir, 'start.lock')))
    throw new UserError(`Nothing runs here: run "pnpm start" first, or ${otherwise}.`)
  try {
    const { databaseUrl, gatewayUrl, opsUrl } = JSON.parse(readFileSync(join(stateDir, 'running.json'), 'utf8'))
    return { databaseUrl: String(databaseUrl), gatewayUrl: String(gatewayUrl), opsUrl: String(opsUrl) }
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
