// Hosts that load is sent to: this machine, unless another one was allowed.
import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

export interface JudgedHost {
  /** All of them, so that what is dialled later is what was judged; empty where there is no such host. */
  addresses: LookupAddress[]
  /** The first of them that is not this machine. */
  elsewhere: string | undefined
}

/** @param hostname as in a URL: IPv6 in brackets */
export async function judgeHost(hostname: string): Promise<JudgedHost> {
  const addresses = await lookup(hostname.replace(/^\[|\]$/g, ''), { all: true }).catch(() => [])
  return { addresses, elsewhere: addresses.find(({ address }) => !isLoopback(address))?.address }
}

function isLoopback(address: string): boolean {
  return loopback.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}
