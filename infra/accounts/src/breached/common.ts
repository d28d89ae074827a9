// The list that ships: the 50,000 passwords that leaks hold most often, from the package @zxcvbn-ts/language-common (MIT).
import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { fold } from '@spillway/api/credentials'
import { dictionary } from '@zxcvbn-ts/language-common'
import { writeList } from './write.ts'

export const commonListFile = fileURLToPath(new URL('../../../../api/src/breached/common.list', import.meta.url))
/** One in a million. */
const RICE_BITS = 20

export const commonPasswords: readonly string[] = dictionary['passwords-common'] ?? []

export async function writeCommonList(out = commonListFile): Promise<void> {
  const hashes = new Set(commonPasswords.map((password) => createHash('sha1').update(fold(password)).digest('hex')))
  await writeList(out, [[...hashes].sort()], { entries: hashes.size, riceBits: RICE_BITS })
}
