// Writes a list of passwords from their SHA-1, in ascending order. Memory does not grow with the list.
import { createHash } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import {
  BLOCK_BYTES,
  createBlockWriter,
  type Header,
  headerBlock,
  prefixOf,
  VALUE_BITS_MAX,
} from '@spillway/api/breached/list'
import { fold } from '@spillway/api/credentials'
import { UserError } from '@spillway/local/processes/command-line'
import { dictionary } from '@zxcvbn-ts/language-common'

/**
 * @param entries how many there are
 * @param riceBits one in 2^riceBits other passwords is taken for a listed one, at the most
 */
export async function writeList(
  out: string,
  hashes: Iterable<readonly string[]> | AsyncIterable<readonly string[]>,
  { entries, riceBits }: Pick<Header, 'entries' | 'riceBits'>,
): Promise<void> {
  const valueBits = Math.ceil(Math.log2(entries)) + riceBits
  if (entries === 0) throw new UserError('No password is left for the list.')
  if (valueBits > VALUE_BITS_MAX) throw new UserError('--one-in is too much for so many passwords.')
  const unfinished = `${out}.unfinished`
  const file = await open(unfinished, 'w')
  try {
    const checksum = createHash('sha256')
    const blocks = createBlockWriter(riceBits)
    await file.write(Buffer.alloc(BLOCK_BYTES))
    const flush = async (isEnd: boolean) => {
      const content = Buffer.concat(blocks.take({ isEnd }))
      checksum.update(content)
      await file.writeFile(content)
    }
    for await (const batch of hashes) {
      for (const hash of batch) blocks.add(prefixOf(hash, valueBits))
      await flush(false)
    }
    await flush(true)
    const sha256 = checksum.digest('hex')
    const header = headerBlock({ format: 'spillway-passwords-1', entries, valueBits, riceBits, sha256 })
    await file.write(header, 0, header.length, 0)
    await file.close()
    await rename(unfinished, out)
  } catch (error) {
    await file.close().catch(() => undefined)
    await rm(unfinished, { force: true })
    throw error
  }
}

// The list that ships: the 50,000 passwords that leaks hold most often, from the package @zxcvbn-ts/language-common (MIT).

export const commonListFile = fileURLToPath(new URL('../../../../api/src/breached/common.list', import.meta.url))
/** One in a million. */
const RICE_BITS = 20

export const commonPasswords: readonly string[] = dictionary['passwords-common'] ?? []

export async function writeCommonList(out = commonListFile): Promise<void> {
  const hashes = new Set(commonPasswords.map((password) => createHash('sha1').update(fold(password)).digest('hex')))
  await writeList(out, [[...hashes].sort()], { entries: hashes.size, riceBits: RICE_BITS })
}
