/**
 * Magento 2: `hash:salt:versions`. Each version hashes what the one before made: MD5, SHA-256, argon2id with libsodium's interactive cost
 * or one that the text gives.
 */
import { createHash } from 'node:crypto'
import type { Password } from '../methods/recipe.js'
import { formatOf, weak } from './format.js'
import { plainRecipe } from './plain.js'
import { hexBytes } from './texts.js'

const PATTERN = /^([0-9a-f]{32,64}):([^:$]{1,128}):((?:[01]:)*)(0|1|2|3_32_(\d{1,2})_(\d{1,10}))$/
/** libsodium takes no other length. */
const SALT_BYTES = 16
const INTERACTIVE = { time: 2, memoryBytes: 67_108_864 }

export const magento = formatOf(
  'Magento 2',
  'Magento 2, Adobe Commerce',
  PATTERN,
  ([hex, salt, earlier, last, time, memoryBytes]) => {
    if (last === '0' || last === '1') return undefined
    const digest = hexBytes(hex)
    const saltBytes = Buffer.from(salt).subarray(0, SALT_BYTES)
    const memoryKib = Number(memoryBytes || INTERACTIVE.memoryBytes) / 1_024
    if (digest?.length !== 32 || saltBytes.length < SALT_BYTES || !Number.isInteger(memoryKib)) return undefined
    const cost = { memoryKib, time: Number(time || INTERACTIVE.time), parallelism: 1 }
    if (cost.time < 1 || memoryKib < 8) return undefined
    const stored = { algorithm: 'argon2id', version: 19, ...cost, salt: saltBytes, digest } as const
    return { recipes: [{ method: 'argon2', stored }], textsOf: (password) => [inner(earlier, salt, password)] }
  },
)

function inner(versions: string, salt: string, password: Password): Password {
  const steps = versions.split(':').filter(Boolean)
  return steps.reduce<Password>(
    (text, version) =>
      createHash(version === '0' ? 'md5' : 'sha256')
        .update(salt)
        .update(text)
        .digest('hex'),
    password,
  )
}

/** Accounts that have not logged in since Magento 2.4. */
export const magentoDigest = weak(
  formatOf('Magento 2 digest', 'Magento 1 and 2 before 2.4', PATTERN, ([hex, salt, earlier, last]) => {
    if (earlier !== '' || (last !== '0' && last !== '1')) return undefined
    const digest = last === '0' ? 'md5' : 'sha256'
    return plainRecipe({ digest, salt: Buffer.from(salt), place: 'before' }, hex, 'hex')
  }),
)
