/** A list of breached passwords in memory, as `pnpm accounts breached build` makes it. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { checkFor } from '@spillway/client/protocol/schema'
import type { FromSchema } from 'json-schema-to-ts'

export interface PasswordList {
  /** Whether a password is in the list, as it is spelt. Never wrong about one that is. */
  has(password: string): boolean
}

/** Reads a list and its checksum at once. Throws one sentence for a file that is missing, no list, or damaged. */
export function readPasswordList(file: string | URL): PasswordList {
  const content = readFile(file)
  const header = readHeader(content.subarray(0, BLOCK_BYTES))
  if (header === undefined)
    throw new Error(`${file} is no list of passwords that pnpm accounts breached build has made`)
  const { valueBits, riceBits, sha256 } = header
  const blocks = content.subarray(BLOCK_BYTES)
  if (createHash('sha256').update(blocks).digest('hex') !== sha256)
    throw new Error(`${file} is damaged: its checksum does not fit its content`)
  return {
    // SHA-1, because it is what the public lists consist of: nothing rests on it.
    has: (password) =>
      isInBlocks(blocks, prefixOf(createHash('sha1').update(password).digest('hex'), valueBits), riceBits),
  }
}

function readFile(file: string | URL): Buffer {
  try {
    return readFileSync(file)
  } catch (cause) {
    throw new Error(`${file} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

// The format of a list of breached passwords: a line of JSON, padded to one block, then blocks of the first `valueBits` of each password's
// SHA-1. An entry takes some `riceBits` + 2 bits, and a password that is not listed is found in one of 2^riceBits cases at the most.

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

/** Undefined for anything else. */
function readHeader(block: Buffer): Header | undefined {
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

// Blocks of a Golomb-coded set: ascending whole numbers in blocks of a fixed size, so that a number's block is found by binary search.
// A block has its first number as a double, then the distance to each following number in Rice's code: the quotient by 2^riceBits in
// ones that end with a zero, then the remainder in riceBits. Ones fill what is left.

export const BLOCK_BYTES = 512
const BLOCK_BITS = BLOCK_BYTES * 8
const FIRST_BITS = 64

interface BlockWriter {
  /** Adds a number that is not below the one before. The same again changes nothing. */
  add(value: number): void
  /** The blocks that are complete since it was last asked; at the end, the last one too. */
  take(options?: { isEnd: boolean }): Buffer[]
}

export function createBlockWriter(riceBits: number): BlockWriter {
  let complete: Buffer[] = []
  let block: Buffer | undefined
  let last = -1
  let position = 0

  function begin(value: number): void {
    if (block !== undefined) complete.push(block)
    block = Buffer.alloc(BLOCK_BYTES, 0xff)
    block.writeDoubleBE(value)
    position = FIRST_BITS
  }

  /** Bits are ones already. */
  function putZero(to: Buffer, at: number): void {
    to.writeUInt8(to.readUInt8(at >> 3) & ~(0x80 >> (at & 7)), at >> 3)
  }

  return {
    add(value) {
      if (value === last) return
      const distance = value - last
      last = value
      const quotient = Math.floor(distance / 2 ** riceBits)
      if (block === undefined || position + quotient + 1 + riceBits > BLOCK_BITS) return begin(value)
      const remainder = distance % 2 ** riceBits
      putZero(block, position + quotient)
      position += quotient + 1
      for (let bit = riceBits - 1; bit >= 0; bit -= 1, position += 1)
        if (((remainder >> bit) & 1) === 0) putZero(block, position)
    },
    take({ isEnd } = { isEnd: false }) {
      if (isEnd && block !== undefined) complete.push(block)
      if (isEnd) block = undefined
      const taken = complete
      complete = []
      return taken
    },
  }
}

/** Whether a number is in these blocks. */
function isInBlocks(blocks: Buffer, value: number, riceBits: number): boolean {
  let [low, high] = [0, blocks.length / BLOCK_BYTES]
  // The block is the last one whose first number is not above the value.
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (blocks.readDoubleBE(middle * BLOCK_BYTES) <= value) low = middle
    else high = middle
  }
  const start = low * BLOCK_BYTES
  return high > low && isInBlock(blocks.subarray(start, start + BLOCK_BYTES), value, riceBits)
}

function isInBlock(block: Buffer, value: number, riceBits: number): boolean {
  const isOne = (at: number) => ((block[at >> 3] ?? 0) & (0x80 >> (at & 7))) !== 0
  let current = block.readDoubleBE()
  let position = FIRST_BITS
  while (current < value) {
    let quotient = 0
    while (position < BLOCK_BITS && isOne(position)) {
      quotient += 1
      position += 1
    }
    if (position === BLOCK_BITS) return false
    let remainder = 0
    for (const end = position + 1 + riceBits; ++position < end; ) remainder = remainder * 2 + Number(isOne(position))
    current += quotient * 2 ** riceBits + remainder
  }
  return current === value
}
