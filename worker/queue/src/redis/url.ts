/**
 * Redis URLs: `redis://` and `rediss://` (TLS),
 * `redis+sentinel://user:password@host:port,host:port/master-name/db`,
 * `redis+cluster://user:password@host:port,host:port`. The last two use TLS with `rediss+`, also to
 * Sentinels. `valkey` stands for `redis` in all of them. `unix://user:password@/path?db=1`
 * is a Unix socket. User and password are for the servers; for Sentinels there are
 * `?sentinelUsername=…&sentinelPassword=…`. All take `?family=4` or `6`, for names with addresses
 * of both kinds, and with TLS `?ca=…`, `?cert=…&key=…`: files in PEM.
 */
import { type HostPort, parseServerUrl } from '@spillway/common/server-url'

const schemes = {
  redis: 6_379,
  rediss: 6_379,
  'redis+cluster': 6_379,
  'rediss+cluster': 6_379,
  'redis+sentinel': 26_379,
  'rediss+sentinel': 26_379,
  unix: 0,
}
const parameterNames = ['family', 'db', 'ca', 'cert', 'key', 'sentinelUsername', 'sentinelPassword']
const example =
  'redis://user:password@host:6379, redis+sentinel://host:26379,host:26379/master or redis+cluster://host:6379,host:6379 (rediss for TLS)'

interface Credentials {
  username?: string
  password?: string
}

/** PEM files; `ca` replaces Node's authorities. */
export interface TlsFiles {
  ca?: string
  cert?: string
  key?: string
}

interface Login extends Credentials {
  tls?: TlsFiles
  /** The kind of IP addresses that names are resolved to; both kinds by default. */
  family?: 0 | 4 | 6
}

export type RedisTarget =
  | { kind: 'single'; login: Login; node: HostPort | { path: string }; database: number }
  | {
      kind: 'sentinel'
      login: Login
      /** For the Sentinels themselves. */
      sentinelLogin: Credentials
      nodes: HostPort[]
      master: string
      database: number
    }
  | { kind: 'cluster'; login: Login; nodes: HostPort[] }

/** The error for an invalid URL is one sentence and never quotes it. */
export function parseRedisUrl(url: string): RedisTarget {
  const form = { setting: 'REDIS_URL', schemes, parameters: parameterNames, hostless: ['unix'], example }
  const { scheme, user, password, hosts, path, parameters } = parseServerUrl(url.replace(/^valkey/, 'redis'), form)
  const [security, kind] = scheme.split('+')
  const tls = tlsFiles(parameters)
  const family = parseFamily(parameters.get('family'))
  if (security !== 'rediss' && Object.keys(tls).length > 0)
    throw new Error('REDIS_URL has ca, cert or key as a parameter, which only TLS uses: begin it with rediss')
  if (kind !== 'sentinel' && (parameters.has('sentinelUsername') || parameters.has('sentinelPassword')))
    throw new Error('REDIS_URL takes sentinelUsername and sentinelPassword only with redis+sentinel://')
  if (security !== 'unix' && parameters.has('db'))
    throw new Error('REDIS_URL takes db only with unix://: elsewhere the number of the database is its path')
  const login: Login = {
    ...credentials(user, password),
    ...(security === 'rediss' ? { tls } : {}),
    ...(family === undefined ? {} : { family }),
  }
  if (kind === 'cluster') {
    if (path !== '') throw new Error('REDIS_URL for Cluster must end with its hosts: a cluster has one database')
    return { kind, login, nodes: hosts }
  }
  if (kind === 'sentinel') {
    const [, master, database] = /^([^/]+)(?:\/(.*))?$/.exec(path) ?? []
    if (!master) throw new Error('REDIS_URL for Sentinel must name the master: redis+sentinel://host:port/master')
    const sentinelLogin = credentials(parameters.get('sentinelUsername'), parameters.get('sentinelPassword'))
    return { kind, login, sentinelLogin, nodes: hosts, master, database: parseDatabase(database) }
  }
  const [node, ...others] = hosts
  if (security === 'unix') {
    if (path === '' || node.host !== '')
      throw new Error('REDIS_URL must name a socket by its whole path: unix:///run/redis/redis.sock')
    return {
      kind: 'single',
      login,
      node: { path: `/${decodeURIComponent(path)}` },
      database: parseDatabase(parameters.get('db')),
    }
  }
  if (others.length > 0)
    throw new Error('REDIS_URL must name one host: for more, redis+sentinel:// or redis+cluster://')
  return { kind: 'single', login, node, database: parseDatabase(path) }
}

/** Hosts, and what is chosen there, for operators: no user and no password. */
export function redisAddress(url: string): string {
  const target = parseRedisUrl(url)
  const nodes = target.kind === 'single' ? [target.node] : target.nodes
  const hosts = nodes
    .map((node) =>
      'path' in node ? node.path : `${node.host.includes(':') ? `[${node.host}]` : node.host}:${node.port}`,
    )
    .sort()
  const master = target.kind === 'sentinel' ? `/${target.master}` : ''
  const database = target.kind === 'cluster' || target.database === 0 ? '' : `/${target.database}`
  return `${hosts.join(',')}${master}${database}`
}

/** Checks a rotated URL: user, password and certificates may change; the server may not. */
export function sameServerAs(url: string): (rotated: string) => void {
  const address = redisAddress(url)
  return (rotated) => {
    if (redisAddress(rotated) !== address)
      throw new Error('REDIS_URL names another server than at the start: a restart takes it')
  }
}

function credentials(username?: string, password?: string): Credentials {
  return { ...(username ? { username } : {}), ...(password ? { password } : {}) }
}

function tlsFiles(parameters: Map<string, string>): TlsFiles {
  const [ca, cert, key] = ['ca', 'cert', 'key'].map((name) => parameters.get(name))
  if ((cert === undefined) !== (key === undefined))
    throw new Error("REDIS_URL must name both files of the client's certificate, cert and key, or neither")
  return { ...(ca ? { ca } : {}), ...(cert && key ? { cert, key } : {}) }
}

function parseFamily(text: string | undefined): Login['family'] {
  if (text === undefined) return undefined
  const family = ([0, 4, 6] as const).find((known) => String(known) === text)
  if (family === undefined) throw new Error('REDIS_URL must have 0, 4 or 6 as its family')
  return family
}

function parseDatabase(text = ''): number {
  if (!/^\d{0,6}$/.test(text)) throw new Error('REDIS_URL must end with the number of a database, or nothing')
  return Number(text)
}
