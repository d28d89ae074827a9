/** A list of breached passwords in memory, as `pnpm accounts breached build` makes it. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { checkFor } from '@spillway/queue/wire/schema'
import type { FromSchema } from 'json-schema-to-ts'

export interface PasswordList {
  /** Whether a password is in the list, as it is spelt. Never wrong about a listed one. */
  has(password: string): boolean
}

// The format: a line of JSON, padded, then the first bytes of each password's SHA-1, in order. SHA-1, because the public lists consist of it:
// nothing rests on it.

export const HEADER_BYTES = 256

const Header = {
  type: 'object',
  properties: {
    format: { const: 'spillway-prefixes-1' },
    entries: { type: 'integer', minimum: 1 },
    prefixBytes: { type: 'integer', minimum: 1, maximum: 20 },
    /** Of all prefixes. */
    sha256: { type: 'string', pattern: '^[0-9a-f]{64}$' },
  },
  required: ['format', 'entries', 'prefixBytes', 'sha256'],
  additionalProperties: false,
} as const
export type Header = FromSchema<typeof Header>

const isHeader = checkFor<Header>(Header)

/** Reads a list and its checksum at once. Throws one sentence for a file that is missing, no list, or damaged. */
export function readPasswordList(file: string | URL): PasswordList {
  const content = readFile(file)
  const header = readHeader(content.subarray(0, HEADER_BYTES))
  if (header === undefined)
    throw new Error(`${file} is no list of passwords that pnpm accounts breached build has made`)
  const { prefixBytes, sha256 } = header
  const prefixes = content.subarray(HEADER_BYTES)
  if (createHash('sha256').update(prefixes).digest('hex') !== sha256)
    throw new Error(`${file} is damaged: its checksum does not fit its content`)
  return {
    has(password) {
      const wanted = createHash('sha1').update(password).digest().subarray(0, prefixBytes)
      let [low, high] = [0, prefixes.length / prefixBytes]
      while (low < high) {
        const middle = Math.floor((low + high) / 2)
        const order = wanted.compare(prefixes, middle * prefixBytes, (middle + 1) * prefixBytes)
        if (order === 0) return true
        if (order < 0) high = middle
        else low = middle + 1
      }
      return false
    },
  }
}

function readFile(file: string | URL): Buffer {
  try {
    return readFileSync(file)
  } catch (cause) {
    throw new Error(`${file} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

/** Undefined for anything else. */
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
