/**
 * Redis URLs: `redis://` and `rediss://` (TLS), `redis+sentinel://user:password@host:port,host:port/master-name/db`,
 * `redis+cluster://user:password@host:port,host:port`, and both of the latter with `rediss+` for TLS, to Sentinels too. User and
 * password are those of the servers; those of Sentinels are `?sentinelUsername=…&sentinelPassword=…`.
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

interface Login extends Credentials {
  tls?: object
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
 * Parses a Redis URL. Special characters in user name and password are written as %XX. Errors never quote the URL: in an invalid one,
 * the host may be a part of the password.
 */
export function parseRedisUrl(url: string): RedisTarget {
  const form =
    /^(rediss?)(?:\+(sentinel|cluster))?:\/\/(?:([^:@/]*)(?::([^@/]*))?@)?([^/@]+)(?:\/([^?]*))?(?:\?(.*))?$/.exec(url)
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
  const login: Login = { ...credentials(username, password), ...(scheme === 'rediss' ? { tls: {} } : {}) }
  if (kind !== 'sentinel' && query !== undefined) throw new Error('REDIS_URL takes parameters for Sentinel alone')
  if (kind === 'cluster') {
    if (path !== '') throw new Error('REDIS_URL for Cluster must end with its hosts: a cluster has one database')
    return { kind, login, nodes }
  }
  if (kind === 'sentinel') {
    const [, master, database] = /^([^/]+)(?:\/(.*))?$/.exec(path) ?? []
    if (!master) throw new Error('REDIS_URL for Sentinel must name the master: redis+sentinel://host:port/master')
    return { kind, login, sentinelLogin: parseSentinelLogin(query), nodes, master, database: parseDatabase(database) }
  }
  if (others.length > 0)
    throw new Error('REDIS_URL must name one host: for more, redis+sentinel:// or redis+cluster://')
  return { kind: 'single', login, node: first, database: parseDatabase(path) }
}

function parseHost(entry: string, defaultPort: number): HostPort {
  const [, host, port] = /^\s*(\[[\da-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?\s*$/i.exec(entry) ?? []
  if (host === undefined || Number(port ?? 1) < 1 || Number(port ?? 1) > 65_535)
    throw new Error('REDIS_URL must name hosts as host or host:port, with / : @ of a password written as %2F %3A %40')
  return { host: host.replace(/^\[|\]$/g, ''), port: port === undefined ? defaultPort : Number(port) }
}

function credentials(username?: string, password?: string): Credentials {
  return {
    ...(username ? { username: decode(username) } : {}),
    ...(password ? { password: decode(password) } : {}),
  }
}

/** Not URLSearchParams, which decodes + as a blank: passwords may contain it. */
function parseSentinelLogin(query = ''): Credentials {
  const given = new Map(query.split('&').map((pair) => [/^[^=]*/.exec(pair)?.[0], pair.replace(/^[^=]*=?/, '')]))
  const login = credentials(given.get('sentinelUsername'), given.get('sentinelPassword'))
  for (const known of ['sentinelUsername', 'sentinelPassword', '']) given.delete(known)
  if (given.size > 0)
    throw new Error('REDIS_URL has sentinelUsername and sentinelPassword as parameters, and no others')
  return login
}

function parseDatabase(text = ''): number {
  if (!/^\d{0,6}$/.test(text)) throw new Error('REDIS_URL must end with the number of a database, or nothing')
  return Number(text)
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Error('REDIS_URL has a % in its user or password that is no %XX: write it as %25')
  }
}
