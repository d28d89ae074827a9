/**
 * Redis URLs: `redis://` and `rediss://` (TLS),
 * `redis+sentinel://user:password@host:port,host:port/master-name/db`,
 * `redis+cluster://user:password@host:port,host:port`, and both of the latter with `rediss+` for
 * TLS, to Sentinels too. User and password are for the servers; for Sentinels there are
 * `?sentinelUsername=…&sentinelPassword=…`. All take `?family=4` or `6`, for names with addresses
 * of both kinds, and with TLS `?ca=…`, `?cert=…&key=…`: files in PEM.
 */
const DEFAULT_PORT = 6379
const DEFAULT_SENTINEL_PORT = 26379

interface HostPort {
  host: string
  port: number
}

interface Credentials {
  username?: string
  password?: string
}

/** PEM files: authorities that replace Node's, and this client's certificate and key. */
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
  | { kind: 'single'; login: Login; node: HostPort; database: number }
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

/**
 * Parses a Redis URL. Special characters in user name and password are written as %XX. Errors never
 * quote the URL: in an invalid one, the host may be a part of the password.
 */
export function parseRedisUrl(url: string): RedisTarget {
  const form =
    /^(rediss?)(?:\+(sentinel|cluster))?:\/\/(?:([^:@/]*)(?::([^@/]*))?@)?([^/@?]+)(?:\/([^?]*))?(?:\?(.*))?$/.exec(url)
  if (form === null) {
    throw new Error(
      'REDIS_URL must be redis://, redis+sentinel://host:port,…/master or redis+cluster://host:port,… (rediss for TLS)',
    )
  }
  const [, scheme, kind, username, password, hosts = '', path = '', query] = form
  const [first, ...others] = hosts
    .split(',')
    .map((entry) => parseHost(entry, kind === 'sentinel' ? DEFAULT_SENTINEL_PORT : DEFAULT_PORT))
  if (first === undefined) throw new Error('REDIS_URL names no host')
  const nodes = [first, ...others]
  const parameters = parseParameters(query)
  const tls = tlsFiles(parameters)
  const family = parseFamily(parameters.get('family'))
  if (scheme !== 'rediss' && Object.keys(tls).length > 0)
    throw new Error('REDIS_URL has ca, cert or key as a parameter, which TLS alone uses: begin it with rediss')
  if (kind !== 'sentinel' && (parameters.has('sentinelUsername') || parameters.has('sentinelPassword')))
    throw new Error('REDIS_URL takes sentinelUsername and sentinelPassword for redis+sentinel:// alone')
  const login: Login = {
    ...credentials(username, password),
    ...(scheme === 'rediss' ? { tls } : {}),
    ...(family === undefined ? {} : { family }),
  }
  if (kind === 'cluster') {
    if (path !== '') throw new Error('REDIS_URL for Cluster must end with its hosts: a cluster has one database')
    return { kind, login, nodes }
  }
  if (kind === 'sentinel') {
    const [, master, database] = /^([^/]+)(?:\/(.*))?$/.exec(path) ?? []
    if (!master) throw new Error('REDIS_URL for Sentinel must name the master: redis+sentinel://host:port/master')
    const sentinelLogin = decoded(parameters.get('sentinelUsername'), parameters.get('sentinelPassword'))
    return { kind, login, sentinelLogin, nodes, master, database: parseDatabase(database) }
  }
  if (others.length > 0)
    throw new Error('REDIS_URL must name one host: for more, redis+sentinel:// or redis+cluster://')
  return { kind: 'single', login, node: first, database: parseDatabase(path) }
}

function parseHost(entry: string, defaultPort: number): HostPort {
  const [, host, port] = /^\s*(\[[\da-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?\s*$/i.exec(entry) ?? []
  if (host === undefined || Number(port ?? 1) < 1 || Number(port ?? 1) > 65_535)
    throw new Error('REDIS_URL must name hosts as host or host:port, with / : @ of a password written as %2F %3A %40')
  return { host: host.replace(/[[\]]/g, ''), port: port === undefined ? defaultPort : Number(port) }
}

function credentials(username?: string, password?: string): Credentials {
  return decoded(username && decode(username), password && decode(password))
}

function decoded(username?: string, password?: string): Credentials {
  return { ...(username ? { username } : {}), ...(password ? { password } : {}) }
}

const parameterNames = ['family', 'ca', 'cert', 'key', 'sentinelUsername', 'sentinelPassword']

/** Not URLSearchParams, which decodes + as a blank: passwords may contain it. */
function parseParameters(query = ''): Map<string, string> {
  const parameters = new Map<string, string>()
  for (const pair of query.split('&').filter((text) => text !== '')) {
    const name = /^[^=]*/.exec(pair)?.[0] ?? ''
    if (!parameterNames.includes(name) || parameters.has(name))
      throw new Error(`REDIS_URL takes the parameters ${parameterNames.join(', ')}, each once, and no others`)
    parameters.set(name, decode(pair.slice(name.length + 1)))
  }
  return parameters
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

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Error('REDIS_URL has a % that is no %XX: write it as %25')
  }
}
