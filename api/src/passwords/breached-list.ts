/** A list of breached passwords in memory, as `pnpm accounts breached build` makes it. */

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { objectOf } from '@spillway/queue/wire/object-schema'
import { checkFor } from '@spillway/queue/wire/schema'
import type { FromSchema } from 'json-schema-to-ts'

// The format: a padded line of JSON, then the sorted prefixes of each password's SHA-1. Public
// lists contain SHA-1, and no security depends on it.

export const HEADER_BYTES = 256

const Header = objectOf({
  format: { const: 'spillway-prefixes-1' },
  entries: { type: 'integer', minimum: 1 },
  prefixBytes: { type: 'integer', minimum: 1, maximum: 20 },
  /** The digest of all prefixes. */
  sha256: { type: 'string', pattern: '^[0-9a-f]{64}$' },
})
export type Header = FromSchema<typeof Header>

const isHeader = checkFor<Header>(Header)

export class PasswordList {
  readonly #prefixes: Buffer
  readonly #prefixBytes: number

  /** Throws one sentence if the file is missing, not a list, or damaged. */
  constructor(file: string | URL) {
    const content = readFile(file)
    const header = readHeader(content.subarray(0, HEADER_BYTES))
    if (header === undefined)
      throw new Error(`${file} is no list of passwords that pnpm accounts breached build has made`)
    this.#prefixBytes = header.prefixBytes
    this.#prefixes = content.subarray(HEADER_BYTES)
    if (createHash('sha256').update(this.#prefixes).digest('hex') !== header.sha256)
      throw new Error(`${file} is damaged: its checksum does not fit its content`)
  }

  /** Whether the list has a password in exactly this spelling. It finds every listed one. */
  has(password: string): boolean {
    const bytes = this.#prefixBytes
    const wanted = createHash('sha1').update(password).digest().subarray(0, bytes)
    let [low, high] = [0, this.#prefixes.length / bytes]
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      const order = wanted.compare(this.#prefixes, middle * bytes, (middle + 1) * bytes)
      if (order === 0) return true
      if (order < 0) high = middle
      else low = middle + 1
    }
    return false
  }
}

function readFile(file: string | URL): Buffer {
  try {
    return readFileSync(file)
  } catch (cause) {
    throw new Error(`${file} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

/** Undefined if the line is not a header. */
function readHeader(line: Buffer): Header | undefined {
  try {
    const header: unknown = JSON.parse(line.toString('utf8'))
    return isHeader(header) ? header : undefined
  } catch {
    return undefined
  }
}

export function headerLine(header: Header): Buffer {
  return Buffer.from(`${JSON.stringify(header).padEnd(HEADER_BYTES - 1)}\n`)
}
