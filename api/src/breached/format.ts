/**
 * The format of a list of breached passwords: a line of JSON, padded to one block, then blocks of the first `valueBits` of each password's
 * SHA-1. An entry takes some `riceBits` + 2 bits, and a password that is not listed is found in one of 2^riceBits cases at the most.
 */
import { checkFor } from '@spillway/client/protocol/schema'
import type { FromSchema } from 'json-schema-to-ts'
import { BLOCK_BYTES } from './blocks.js'

/** Numbers with more bits are not exact. */
export const VALUE_BITS_MAX = 52

const Header = {
  type: 'object',
  properties: {
    format: { const: 'spillway-passwords-1' },
    entries: { type: 'integer', minimum: 1 },
    valueBits: { type: 'integer', minimum: 1, maximum: VALUE_BITS_MAX },
    riceBits: { type: 'integer', minimum: 1, maximum: 30 },
    /** Of all blocks. */
    sha256: { type: 'string', pattern: '^[0-9a-f]{64}$' },
  },
  required: ['format', 'entries', 'valueBits', 'riceBits', 'sha256'],
  additionalProperties: false,
} as const
export type Header = FromSchema<typeof Header>

const isHeader = checkFor<Header>(Header)

export function headerBlock(header: Header): Buffer {
  return Buffer.from(`${JSON.stringify(header).padEnd(BLOCK_BYTES - 1)}\n`)
}

/** Undefined for what is no header. */
export function readHeader(block: Buffer): Header | undefined {
  try {
    const header: unknown = JSON.parse(block.toString('utf8'))
    return isHeader(header) ? header : undefined
  } catch {
    return undefined
  }
}

/** The first bits of a SHA-1 in hexadecimal, as a number. */
export function prefixOf(sha1: string, valueBits: number): number {
  return Math.floor(Number.parseInt(sha1.slice(0, VALUE_BITS_MAX / 4), 16) / 2 ** (VALUE_BITS_MAX - valueBits))
}
