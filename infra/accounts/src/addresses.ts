// The addresses of a file so far, and the line of each, in little memory: of each address a part of a digest is kept.
import { hash } from 'node:crypto'

export interface Addresses {
  /** The line that had the address before, if there was one; else the address is kept with its line. */
  firstLineOf(email: string, line: number): number | undefined
}

/** Two of a million addresses have the same part of a digest in one file of twenty thousand, and are told apart by the database. */
export function createAddresses(): Addresses {
  const lines = new Map<number, number>()
  return {
    firstLineOf(email, line) {
      const key = Number.parseInt(hash('sha1', email).slice(0, 13), 16)
      const first = lines.get(key)
      if (first === undefined) lines.set(key, line)
      return first
    },
  }
}
