// The application that is stormed: one address, found and judged before anything is sent.
import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import type { AgentOptions } from 'node:https'
import { BlockList, connect, isIP } from 'node:net'
import { UserError } from '@spillway/infra/processes/command-line'

interface Target {
  /** As it was given: `http://localhost:3000`. */
  origin: string
  /** The name stays in the Host header and in TLS; connections go to the judged address. */
  dial: AgentOptions
}

const CONNECT_MS = 5_000

/**
 * Finds an address of the target on which something listens.
 *
 * @throws {@link UserError} for a wrong origin, another machine without `beyondLoopback`, or no
 * listener
 */
export async function openTarget(text: string, beyondLoopback: boolean): Promise<Target> {
  const url = parseOrigin(text)
  const { addresses, elsewhere } = await judgeHost(url.hostname, beyondLoopback, 'a storm')
  const isTls = url.protocol === 'https:'
  const port = Number(url.port || (isTls ? 443 : 80))
  const address = await firstThatListens(addresses, port)
  if (address === undefined) throw new UserError(`Nothing listens at ${url.origin}: start the application first.`)
  const dial: AgentOptions = {
    lookup: (_hostname, { all }, callback) =>
      all ? callback(null, [address]) : callback(null, address.address, address.family),
    // Applications under development sign their certificates themselves.
    ...(isTls && { rejectUnauthorized: elsewhere !== undefined }),
  }
  return { origin: url.origin, dial }
}

/** Does not quote what was given: it may hold a password. */
function parseOrigin(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isOrigin =
    url !== undefined && ['http:', 'https:'].includes(url.protocol) && [url.origin, `${url.origin}/`].includes(url.href)
  if (isOrigin) return url
  throw new UserError('--target takes the address of an application, such as http://127.0.0.1:3000, and no path.')
}

/** A name such as localhost may have two addresses, of which an application listens on one. */
async function firstThatListens(addresses: readonly LookupAddress[], port: number): Promise<LookupAddress | undefined> {
  for (const address of addresses) if (await listens(address.address, port)) return address
  return undefined
}

async function listens(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port })
  const connected = once(socket, 'connect', { signal: AbortSignal.timeout(CONNECT_MS) })
  const isListening = await connected.then(
    () => true,
    () => false,
  )
  socket.destroy()
  return isListening
}

// Hosts that load is sent to: this machine, unless another one was allowed.

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/**
 * All addresses of a host, so that the judged one is dialled, and the first that is another machine.
 *
 * @param hostname as in a URL: IPv6 in brackets
 * @throws {@link UserError} for an unknown host, and for another machine unless it is allowed
 */
export async function judgeHost(hostname: string, beyondLoopback: boolean, what: 'a storm' | 'a spike') {
  const addresses = await lookup(hostname.replace(/^\[|\]$/g, ''), { all: true }).catch(() => [])
  if (addresses.length === 0) throw new UserError(`There is no host "${hostname}".`)
  const elsewhere = addresses.find(({ address }) => !isLoopback(address))?.address
  if (elsewhere === undefined || beyondLoopback) return { addresses, elsewhere }
  throw new UserError(
    `${hostname} is not this machine (${elsewhere}): ${what} goes to others only with --beyond-loopback, and only where ` +
      'you may send one.',
  )
}

function isLoopback(address: string): boolean {
  return loopback.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}
