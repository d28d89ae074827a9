// The targets of a spike: this machine, unless another one was allowed.

import { UserError } from '@spillway/infra/processes/command-line'
import { quantile } from '@spillway/infra/rig/quantile'
import { judgeHost } from '../storm/src/target.ts'
import { type End, ended, letInEnds, type SpikeResult } from './spike.ts'

/**
 * The URL to dial. The name of this machine is replaced by its judged address.
 * @throws {@link UserError} for what is no `http://host:port`, or not this machine without
 * `beyondLoopback`
 */
export async function resolveTarget(target: string, beyondLoopback: boolean): Promise<string> {
  const url = URL.canParse(target) ? new URL(target) : undefined
  if (url?.protocol !== 'http:' || url.pathname !== '/' || url.search !== '' || url.username !== '') {
    throw new UserError(`--target takes the address of a gateway, such as http://127.0.0.1:3000, not "${target}".`)
  }
  const { addresses } = await judgeHost(url.hostname, beyondLoopback, 'a spike')
  const [first] = addresses
  if (beyondLoopback || first === undefined) return url.origin
  url.hostname = first.family === 6 ? `[${first.address}]` : first.address
  return url.origin
}

// The result of a spike in words.

const count = (value: number): string => Math.round(value).toLocaleString('en')

const seconds = (ms: number): string => (ms / 1_000).toFixed(1)

const lines: [words: string, ...ends: End[]][] = [
  ['logged in at once', 'atOnce'],
  ['logged in with a ticket', 'byTicket'],
  ['logged in after coming back', 'afterRefusal'],
  ['gave up', 'gaveUp'],
  ['stopped by a limit (429)', 'limited'],
  ['left with a ticket (expired)', 'expired'],
  ['errors', 'error', 'unknown'],
]

export function inWords(result: SpikeResult): string {
  const { people, visits } = result
  const letIn = ended(result, ...letInEnds)
  const lastMs = letIn.reduce((most, { endedMs }) => Math.max(most, endedMs), 0)
  const sentAway = visits.filter(({ wasSentAway }) => wasSentAway).length
  const met = visits.filter(({ metFailure }) => metFailure).length
  const rows = lines.map(([words, ...ends]) => {
    const tookMs = ended(result, ...ends).map(({ tookMs }) => tookMs)
    const quartiles = [0.25, 0.5, 0.75, 1].map((part) => seconds(quantile(tookMs, part) ?? 0)).join(' · ')
    const after = letInEnds.some((end) => ends.includes(end)) && tookMs.length > 0 ? `   after ${quartiles} s` : ''
    return `  ${words.padEnd(30)}${count(tookMs.length).padStart(8)}${after}`
  })
  return [
    `${count(people)} people came in ${result.seconds.toFixed(0)} s, ${count(result.rate)} a second:`,
    `${((100 * letIn.length) / Math.max(people, 1)).toFixed(1)} % got in, the last one ${seconds(lastMs)} s after the first came; ` +
      `${count(sentAway)} were sent away on the way, ${count(met)} met a failure.`,
    '',
    ...rows,
    '',
    `  got in, by time ${lineOf(letIn.map(({ endedMs }) => endedMs / Math.max(lastMs, 1)))} ${seconds(lastMs)} s`,
    '  Times are quartiles and the slowest, from when each person came.',
    ...(ended(result, 'limited').length > 0 ? ['', LIMITED] : []),
  ].join('\n')
}

const BARS = ' ▁▂▃▄▅▆▇█'
const COLUMNS = 48

/** A line of bars: how many of these shares of the time fall into each part of it. */
function lineOf(shares: readonly number[]): string {
  const columns = Array.from({ length: COLUMNS }, () => 0)
  for (const share of shares) {
    const column = Math.min(Math.floor(share * COLUMNS), COLUMNS - 1)
    columns[column] = (columns[column] ?? 0) + 1
  }
  const most = Math.max(...columns, 1)
  return columns.map((count) => BARS[Math.ceil((count / most) * (BARS.length - 1))]).join('')
}

const LIMITED =
  'Each of them came from an address of their own, in X-Forwarded-For. A gateway that does not name this machine in TRUST_PROXY\n' +
  'counts all of them as one address.'
