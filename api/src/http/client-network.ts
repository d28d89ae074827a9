/** The network by which a client is counted: an IPv4 address, or the /64 of an IPv6 address. */
import { BlockList, isIP, SocketAddress } from 'node:net'

/** Some proxies append the port, which differs between connections. A /64 may be written in several ways. */
export function networkOf(client: string): string {
  const address = withoutPort(client).replace(/\/64$/, '')
  // Proxies may also send names, such as "unknown".
  if (isIP(address) !== 6) return address.toLowerCase()
  const canonical = new SocketAddress({ address, family: 'ipv6' }).address
  const [, mapped] = /^::ffff:([\d.]+)$/.exec(canonical) ?? []
  return mapped ?? `${firstHalf(canonical)}::/64`
}

/** Proxies may send any text. An address is shorter. */
const STORED_MAX_LENGTH = 64

/** The network in the form that is stored: bounded, and printable ASCII for any header. */
export function storedNetworkOf(client: string): string {
  return networkOf(client)
    .replace(/[^!-~]/g, '')
    .slice(0, STORED_MAX_LENGTH)
}

/** What a block of an address or of a range covers: of an IPv6 address its /64, as in all counts. */
export function rangeOf(network: string): string {
  return network.includes('/') ? network : networkOf(network)
}

export class AddressRanges {
  readonly #ranges: readonly string[]
  readonly #list = new BlockList()

  constructor(ranges: readonly string[]) {
    this.#ranges = ranges
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

  /** Whether a range shares an address with these: then one contains the first address of the other. */
  overlaps(range: string): boolean {
    const first = (each: string) => each.replace(/\/.*/, '')
    const other = new AddressRanges([range])
    return this.has(first(range)) || this.#ranges.some((own) => other.has(first(own)))
  }
}

/** The address in `address:port`, `[address]:port` or `[address]`. */
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
