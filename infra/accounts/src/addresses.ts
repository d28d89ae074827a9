// The addresses of a file so far, and the line of each, in little memory: a part of a digest and a number, in an open hash table.
import { hash } from 'node:crypto'

export interface Addresses {
  /** The line that had the address before, if there was one; else the address is kept with its line. */
  firstLineOf(email: string, line: number): number | undefined
}

const FIRST_CAPACITY = 2 ** 14
/** A fuller table takes longer to search. */
const FULL = 0.7
/** 52 bits: a file of a million addresses has two with the same part once in ten thousand files, and then one row has a wrong reason. */
const DIGITS = 13

export function createAddresses(): Addresses {
  let table = newTable(FIRST_CAPACITY)
  let count = 0

  function grow(): void {
    const { keys, lines } = table
    const larger = newTable(2 * keys.length)
    for (const [at, key] of keys.entries()) {
      if (key === 0) continue
      const place = placeOf(larger, key)
      larger.keys[place] = key
      larger.lines[place] = lines[at] ?? 0
    }
    table = larger
  }

  return {
    firstLineOf(email, line) {
      // Zero is an empty place.
      const key = Number.parseInt(hash('sha1', email).slice(0, DIGITS), 16) + 1
      const place = placeOf(table, key)
      if (table.keys[place] === key) return table.lines[place]
      table.keys[place] = key
      table.lines[place] = line
      if (++count > FULL * table.keys.length) grow()
      return undefined
    },
  }
}

interface Table {
  keys: Float64Array
  lines: Uint32Array
}

function newTable(capacity: number): Table {
  return { keys: new Float64Array(capacity), lines: new Uint32Array(capacity) }
}

/** Where a key is, or the empty place where it belongs. */
function placeOf({ keys }: Table, key: number): number {
  let place = key % keys.length
  while (keys[place] !== 0 && keys[place] !== key) place = (place + 1) % keys.length
  return place
}
