// The targets of a spike: this machine, unless another one was allowed.
import { judgeHost } from '@spillway/storm/target'
import { UserError } from '@spillway/local/processes/command-line'
import { type End, ended, type SpikeResult } from './spike.ts'

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

// The result of a spike in words.

const count = (value: number): string => Math.round(value).toLocaleString('en')

const lines: [words: string, ends: End[]][] = [
  ['logged in at once', ['atOnce']],
  ['logged in with a ticket', ['byTicket']],
  ['told to come back later (503)', ['busy']],
  ['stopped by a limit (429)', ['limited']],
  ['left with a ticket (expired)', ['expired']],
  ['errors', ['error', 'unknown']],
]

/** A few lines for the terminal. */
export function inWords(result: SpikeResult): string {
  const rows = lines.map(([words, ends]) => {
    const isIn = ends.includes('atOnce') || ends.includes('byTicket')
    const visits = ended(result, ...ends)
    const slowestMs = visits.reduce((most, { tookMs }) => Math.max(most, tookMs), 0)
    const slowest = isIn && slowestMs > 0 ? `   the slowest after ${(slowestMs / 1_000).toFixed(1)} s` : ''
    return `  ${words.padEnd(30)}${count(visits.length).padStart(8)}${slowest}`
  })
  const head = `${count(result.people)} people came in ${result.seconds.toFixed(0)} s, ${count(result.rate)} a second:`
  return [head, '', ...rows, ...(ended(result, 'limited').length > 0 ? ['', LIMITED] : [])].join('\n')
}

const LIMITED =
  'Each of them came from an address of their own, in X-Forwarded-For. A gateway that does not name this machine in TRUST_PROXY\n' +
  'counts all of them as one address.'
