/** What a client counts as by its address: itself with IPv4, its network of /64 with IPv6, as one customer has all of one. */
import { isIP, SocketAddress } from 'node:net'

/** Of an address as a connection or a proxy gives it. Some proxies write the port too, and each connection has another one. */
export function networkOf(client: string): string {
  const address = withoutPort(client)
  // Not everything that proxies write is an address.
  if (isIP(address) !== 6) return address.toLowerCase()
  const canonical = new SocketAddress({ address, family: 'ipv6' }).address
  const [, mapped] = /^::ffff:([\d.]+)$/.exec(canonical) ?? []
  return mapped ?? `${firstHalf(canonical)}::/64`
}

/** `address:port`, `[address]:port` or `[address]` as the address alone. */
function withoutPort(client: string): string {
  const [, bracketed, plain] = /^(?:\[(.*)\]|([^:]*))(?::\d+)?$/.exec(client) ?? []
  return bracketed ?? plain ?? client
}

/** Four of the eight groups, those that `::` leaves out included. */
function firstHalf(canonical: string): string {
  const [before = [], after = []] = canonical.split('::').map((part) => part.split(':').filter((group) => group !== ''))
  const leftOut = Array<string>(8 - before.length - after.length).fill('0')
  return [...before, ...leftOut, ...after].slice(0, 4).join(':')
}
