// What became of the people of a spike, in words.
import type { SpikeResult } from './spike.ts'

const count = (value: number): string => Math.round(value).toLocaleString('en')
const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`

/** A few lines for the terminal. */
export function inWords({ rate, seconds: lasted, people, ends }: SpikeResult): string {
  const lines: [words: string, number: number, slowestMs?: number][] = [
    ['logged in at once', ends.atOnce.people, ends.atOnce.slowestMs],
    ['logged in with a ticket', ends.byTicket.people, ends.byTicket.slowestMs],
    ['told to come back later (503)', ends.busy.people],
    ['stopped by a limit (429)', ends.limited.people],
    ['left with a ticket (expired)', ends.expired.people],
    ['errors', ends.error.people + ends.unknown.people],
  ]
  const rows = lines.map(([words, number, slowestMs = 0]) => {
    const slowest = number > 0 && slowestMs > 0 ? `   the slowest after ${seconds(slowestMs)}` : ''
    return `  ${words.padEnd(30)}${count(number).padStart(8)}${slowest}`
  })
  const hints = ends.limited.people > 0 ? ['', LIMITED] : []
  return [
    `${count(people)} people came in ${lasted.toFixed(0)} s, ${count(rate)} a second:`,
    '',
    ...rows,
    ...hints,
  ].join('\n')
}

const LIMITED =
  'Each of them came from an address of their own, in X-Forwarded-For. A gateway that does not name this machine in TRUST_PROXY\n' +
  'counts all of them as one address.'
