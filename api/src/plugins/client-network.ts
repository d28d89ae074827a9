/** The network by which a client is counted: an IPv4 address, or the /64 of an IPv6 address. */
import { BlockList, isIP, SocketAddress } from 'node:net'

/** Some proxies append the port, which differs for each connection. */
export function networkOf(client: string): string {
  const address = withoutPort(client)
  // Proxies may also send names, such as "unknown".
  if (isIP(address) !== 6) return address.toLowerCase()
  const canonical = new SocketAddress({ address, family: 'ipv6' }).address
  const [, mapped] = /^::ffff:([\d.]+)$/.exec(canonical) ?? []
  return mapped ?? `${firstHalf(canonical)}::/64`
}

/** Proxies may send anything; an address is shorter. */
const STORED_MAX_LENGTH = 64

/** The network as it is stored: bounded, and printable ASCII whatever a proxy sends. */
export function storedNetworkOf(client: string): string {
  return networkOf(client)
    .replace(/[^!-~]/g, '')
    .slice(0, STORED_MAX_LENGTH)
}

/** The network around a {@link networkOf}: /24 of IPv4, /48 of IPv6. Names are their own. */
export function wideNetworkOf(network: string): string {
  if (isIP(network) === 4) return `${network.split('.', 3).join('.')}.0/24`
  const [, site] = /^((?:[\da-f]+:){3}).*::\/64$/.exec(network) ?? []
  return site === undefined ? network : `${site}:/48`
}

export class AddressRanges {
  readonly #list = new BlockList()

  constructor(ranges: readonly string[]) {
    for (const range of ranges) {
      const [address = '', bits] = range.split('/')
      const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
      this.#list.addSubnet(address, Number(bits ?? (family === 'ipv6' ? 128 : 32)), family)
    }
  }

  has(client: string): boolean {
    const [address = ''] = withoutPort(client).split('%')
    const version = isIP(address)
    return version !== 0 && this.#list.check(address, version === 6 ? 'ipv6' : 'ipv4')
  }
}

/** `address:port`, `[address]:port` or `[address]` as the address alone. */
export function withoutPort(client: string): string {
  const [, bracketed, plain] = /^(?:\[(.*)\]|([^:]*))(?::\d+)?$/.exec(client) ?? []
  return bracketed ?? plain ?? client
}

/** The first four of the eight groups, with those that `::` omits. */
function firstHalf(canonical: string): string {
  const [before = [], after = []] = canonical.split('::').map((part) => part.split(':').filter((group) => group !== ''))
  const leftOut = Array<string>(8 - before.length - after.length).fill('0')
  return [...before, ...leftOut, ...after].slice(0, 4).join(':')
}
