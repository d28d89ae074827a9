/**
 * Firebase Authentication's modified scrypt (github.com/firebase/scrypt). Signer key and salt separator are the project's and stand in no
 * row: a stored hash is `$firebase-scrypt$ln=14,r=8$<salt>$<hash>`, in base64, as `pnpm accounts import --preset firebase` writes it.
 */
import type { FirebaseRecipe } from '../methods/recipe.js'
import { formatOf } from './format.js'
import { urlBase64 } from './texts.js'

export const firebase = formatOf(
  'Firebase scrypt',
  'Firebase Authentication',
  /^\$firebase-scrypt\$ln=(\d{1,2}),r=(\d{1,3})\$([A-Za-z0-9+/]*={0,2})\$([A-Za-z0-9+/]+={0,2})$/,
  ([logCost, blockSize, salt, encrypted], { firebase: project }) =>
    project && recipeOf({ logCost, blockSize, salt, encrypted, ...project }),
)

const BASE64 = '([A-Za-z0-9+/_-]+={0,2})'

/** The keys of the project stand in each row. */
export const firescrypt = formatOf(
  'Ory firescrypt',
  'Ory Kratos, of accounts that came from Firebase',
  new RegExp(`^\\$firescrypt\\$ln=(\\d{1,2}),r=(\\d{1,3}),p=1\\$${Array(4).fill(BASE64).join('\\$')}$`),
  ([logCost, blockSize, salt, encrypted, separator, key]) => {
    const [saltSeparator, signerKey] = [urlBase64(separator), urlBase64(key)]
    if (saltSeparator === undefined || signerKey === undefined) return undefined
    return recipeOf({ logCost, blockSize, salt, encrypted, signerKey, saltSeparator })
  },
)

interface Parts {
  logCost: string
  blockSize: string
  salt: string
  encrypted: string
  signerKey: Buffer
  saltSeparator: Buffer
}

function recipeOf({ logCost, blockSize, signerKey, saltSeparator, ...texts }: Parts): FirebaseRecipe | undefined {
  const salt = texts.salt === '' ? Buffer.alloc(0) : urlBase64(texts.salt)
  const encrypted = urlBase64(texts.encrypted)
  const cost = 2 ** Number(logCost)
  if (salt === undefined || encrypted?.length !== signerKey.length || cost < 2 || Number(blockSize) < 1)
    return undefined
  return {
    ...{ method: 'firebase', cost, blockSize: Number(blockSize), parallelization: 1 },
    ...{ salt: Buffer.concat([salt, saltSeparator]), signerKey, encrypted },
  }
}

/** The stored hash of an exported account; salt and hash in base64, with either alphabet. */
export function firebaseHash(cost: { logCost: number; blockSize: number }, salt: string, hash: string): string {
  const base64 = (text: string) => text.replaceAll('-', '+').replaceAll('_', '/')
  return `$firebase-scrypt$ln=${cost.logCost},r=${cost.blockSize}$${base64(salt)}$${base64(hash)}`
}
