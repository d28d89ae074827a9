// The result of a spike in words.
import { type End, ended, type SpikeResult } from './spike.ts'

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
