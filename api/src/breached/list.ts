/** A list of breached passwords in memory, as `pnpm accounts breached build` makes it. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { BLOCK_BYTES, isInBlocks } from './blocks.js'
import { prefixOf, readHeader } from './format.js'

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
    throw new Error(`${file} is damaged: its checksum is not that of its content`)
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
