// The targets of a spike: this machine, unless another one was allowed.
import { judgeHost } from '@spillway/storm/hosts'
import { UserError } from '@spillway/local/processes/command-line'

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
  const { addresses, elsewhere } = await judgeHost(url.hostname)
  const [first] = addresses
  if (first === undefined) {
    throw new UserError(`There is no host "${url.hostname}": --target takes an address such as http://127.0.0.1:3000.`)
  }
  if (beyondLoopback) return url.origin
  if (elsewhere !== undefined) {
    throw new UserError(
      `${url.hostname} is not this machine (${elsewhere}): a spike goes to others only with --beyond-loopback, and only ` +
        'where you may send one.',
    )
  }
  url.hostname = first.family === 6 ? `[${first.address}]` : first.address
  return url.origin
}
