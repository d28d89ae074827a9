/** URLs of the servers that a process connects to: Redis, PostgreSQL, a mail server. */

export interface HostPort {
  host: string
  port: number
}

export interface ServerUrl {
  scheme: string
  user: string
  password: string
  /** The host is empty if the URL has no host, for instance before a Unix socket. */
  hosts: [HostPort, ...HostPort[]]
  /** The text after the hosts, as it is written, without its slash. */
  path: string
  parameters: Map<string, string>
}

interface UrlForm {
  /** The setting that contains the URL. */
  setting: string
  /** The default port of each scheme. */
  schemes: Readonly<Record<string, number>>
  parameters: readonly string[]
  /** Schemes whose URL may have no host. */
  hostless?: readonly string[]
  example: string
}

/**
 * Parses `scheme://user:password@host:port,host:port/path?name=value`. Special characters of user,
 * password and parameters are written as %XX.
 *
 * @throws one sentence that begins with the setting and quotes nothing of the URL: in an invalid
 *   one, the host, the path or a parameter may be a part of the password
 */
export function parseServerUrl(url: string, urlForm: UrlForm): ServerUrl {
  const { setting, schemes, parameters, hostless = [], example } = urlForm
  const form = /^([a-z+]+):\/\/(?:([^:@/]*)(?::([^@/]*))?@)?([^@/?#]*)(?:\/([^@?#]*))?(?:\?(.*))?$/.exec(url)
  const [, scheme = '', user = '', password = '', hosts = '', path = '', query = ''] = form ?? []
  const defaultPort = Object.hasOwn(schemes, scheme) ? schemes[scheme] : undefined
  const wrong = new Error(
    `${setting} must be a URL such as ${example}, with / : @ # ? % of user and password written as %2F %3A %40 %23 %3F %25`,
  )
  if (defaultPort === undefined) throw wrong
  const [first, ...others] = hosts.split(',').map((entry) => {
    if (hosts === '' && hostless.includes(scheme)) return { host: '', port: defaultPort }
    return hostPort(entry, defaultPort, wrong)
  })
  if (first === undefined) throw wrong
  const known = `${setting} takes the parameters ${parameters.join(', ')}, each once, and no others`
  const given = new Map<string, string>()
  for (const pair of query.split('&').filter((text) => text !== '')) {
    const [name = ''] = pair.split('=', 1)
    if (!parameters.includes(name) || given.has(name)) throw new Error(known)
    const value = pair.slice(name.length + 1)
    given.set(name, decode(value, wrong))
  }
  decode(path, wrong)
  return {
    scheme,
    user: decode(user, wrong),
    password: decode(password, wrong),
    hosts: [first, ...others],
    path,
    parameters: given,
  }
}

function hostPort(entry: string, defaultPort: number, wrong: Error): HostPort {
  const [, host, port] = /^\s*(\[[\da-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?\s*$/i.exec(entry) ?? []
  if (host === undefined || Number(port ?? 1) < 1 || Number(port ?? 1) > 65_535) throw wrong
  return { host: host.replace(/[[\]]/g, ''), port: port === undefined ? defaultPort : Number(port) }
}

function decode(text: string, wrong: Error): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw wrong
  }
}
