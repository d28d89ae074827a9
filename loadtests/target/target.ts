// The targets of a spike: this machine, unless another one was allowed.
import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { UserError } from '@spillway/local/processes/user-error'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/**
 * The URL to dial for a target. A name on this machine is replaced by the address that it was judged by, so that it cannot become
 * another one afterwards.
 * @throws {@link UserError} for what is no `http://host:port`, or not this machine without `beyondLoopback`
 */
export async function resolveTarget(target: string, beyondLoopback: boolean): Promise<string> {
  const url = URL.canParse(target) ? new URL(target) : undefined
  if (url?.protocol !== 'http:' || url.pathname !== '/' || url.search !== '' || url.username !== '') {
    throw new UserError(`--target takes the address of a gateway, such as http://127.0.0.1:3000, not "${target}".`)
  }
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const addresses = await lookup(host, { all: true }).catch((cause) => {
    throw new UserError(`There is no host "${host}": --target takes an address such as http://127.0.0.1:3000.`, {
      cause,
    })
  })
  const elsewhere = addresses.find(({ address }) => !isLoopback(address))
  const [first] = addresses
  if (beyondLoopback || first === undefined) return url.origin
  if (elsewhere !== undefined) {
    throw new UserError(
      `${host} is not this machine (${elsewhere.address}): a spike goes to others only with --beyond-loopback, and only ` +
        'where you may send one.',
    )
  }
  url.hostname = first.family === 6 ? `[${first.address}]` : first.address
  return url.origin
}

function isLoopback(address: string): boolean {
  return loopback.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}
