/** PBKDF2 of frameworks, directories and products. */
import { type Pbkdf2Recipe, pbkdf2Digests, type Recipe } from '../methods/recipe.js'
import {
  adaptedPair,
  base64Pair,
  type Format,
  formatOf,
  hexBytes,
  isUsualKey,
  paddedBase64,
  SALT_MAX_BYTES,
  utf8Bytes,
} from './format.js'

const ITERATIONS_MAX = 2 ** 31 - 1

interface Parts {
  digest: string
  iterations: string | number
  salt?: Buffer | undefined
  key?: Buffer | undefined
  /** Length of the key; `digest` for the length of the digest [any usual length]. */
  keyBytes?: number | 'digest' | undefined
}

/** Undefined for a part that was not read, or that no maker writes. */
export function pbkdf2Recipe({ digest, iterations: count, salt, key, keyBytes }: Parts): Pbkdf2Recipe | undefined {
  const iterations = Number(count)
  if (!isDigest(digest) || salt === undefined || key === undefined) return undefined
  const isWhole =
    keyBytes === undefined ? isUsualKey(key) : key.length === (keyBytes === 'digest' ? pbkdf2Digests[digest] : keyBytes)
  if (!isWhole || iterations < 1 || iterations > ITERATIONS_MAX || salt.length > SALT_MAX_BYTES) return undefined
  return { method: 'pbkdf2', digest, iterations, salt, key }
}

function isDigest(name: string): name is Pbkdf2Recipe['digest'] {
  return Object.hasOwn(pbkdf2Digests, name)
}

type Read = (text: string) => Buffer | undefined
type Texts = { salt: Read; key: Read } | { pair(salt: string, key: string): { salt?: Buffer; key?: Buffer } }

/**
 * A format whose pattern names its groups: `iterations`, `salt`, `key`; `digest` where there are
 * several [SHA-1]; `length` where the text states the length of the key.
 */
function named(name: string, makers: string, pattern: RegExp, texts: Texts & { keyBytes?: 'digest' }): Format {
  return {
    name,
    makers,
    read(text) {
      const { groups } = pattern.exec(text) ?? {}
      if (groups === undefined) return undefined
      const { iterations = '', length, salt = '', key = '', digest = 'sha1' } = groups
      const recipe = pbkdf2Recipe({
        ...{ digest: digest.toLowerCase().replace('-', ''), iterations },
        ...('pair' in texts ? texts.pair(salt, key) : { salt: texts.salt(salt), key: texts.key(key) }),
        keyBytes: length === undefined ? texts.keyBytes : Number(length),
      })
      return recipe && { recipes: [recipe] }
    },
  }
}

export const pbkdf2Formats: readonly Format[] = [
  named(
    'PBKDF2',
    'PHC strings: Keycloak imports, Ory Kratos, @phc/pbkdf2',
    /^\$pbkdf2-(?<digest>sha\d+)\$i=(?<iterations>\d{1,9})(?:,l=(?<length>\d{1,4}))?\$(?<salt>[A-Za-z0-9+/]+=*)\$(?<key>[A-Za-z0-9+/]+=*)$/,
    { pair: base64Pair },
  ),
  named(
    'Django PBKDF2',
    'Django, passlib',
    /^pbkdf2_(?<digest>sha\d+)\$(?<iterations>\d{1,9})\$(?<salt>[^$]{1,128})\$(?<key>[A-Za-z0-9+/]+=*)$/,
    { salt: utf8Bytes, key: paddedBase64, keyBytes: 'digest' },
  ),
  named(
    'Werkzeug PBKDF2',
    'Werkzeug, Flask',
    /^pbkdf2:(?<digest>sha\d+):(?<iterations>\d{1,9})\$(?<salt>[^$]{1,128})\$(?<key>[0-9a-f]+)$/,
    { salt: utf8Bytes, key: hexBytes, keyBytes: 'digest' },
  ),
  named(
    'passlib PBKDF2',
    'passlib, Zitadel',
    /^\$pbkdf2(?:-(?<digest>sha256|sha512))?\$(?<iterations>\d{1,9})\$(?<salt>[A-Za-z0-9./+]+=*)\$(?<key>[A-Za-z0-9./+]+=*)$/,
    { pair: adaptedPair, keyBytes: 'digest' },
  ),
  named(
    'LDAP PBKDF2',
    'OpenLDAP, 389 Directory Server, passlib',
    /^\{PBKDF2(?:-(?<digest>SHA(?:1|256|512)))?\}(?<iterations>\d{1,9})\$(?<salt>[A-Za-z0-9./+]+=*)\$(?<key>[A-Za-z0-9./+]+=*)$/,
    { pair: adaptedPair, keyBytes: 'digest' },
  ),
  // Four bytes of iterations, 64 of salt, 256 of key.
  formatOf(
    'FreeIPA PBKDF2',
    'FreeIPA, 389 Directory Server before 2',
    /^\{PBKDF2_SHA256\}([A-Za-z0-9+/]{432})$/,
    ([text]) => {
      const bytes = paddedBase64(text)
      if (bytes === undefined) return undefined
      const [salt, key] = [bytes.subarray(4, 68), bytes.subarray(68)]
      return pbkdf2Recipe({ digest: 'sha256', iterations: bytes.readUInt32BE(), salt, key, keyBytes: 256 })
    },
  ),
  formatOf('Atlassian PBKDF2', 'Jira, Confluence, Crowd', /^\{PKCS5S2\}([A-Za-z0-9+/]{64})$/, ([text]) => {
    const bytes = paddedBase64(text)
    const [salt, key] = [bytes?.subarray(0, 16), bytes?.subarray(16)]
    return pbkdf2Recipe({ digest: 'sha1', iterations: 10_000, salt, key, keyBytes: 32 })
  }),
  {
    name: 'ASP.NET Identity',
    makers: 'ASP.NET Identity 2, ASP.NET Core Identity',
    read(text) {
      const bytes = text.length >= ASP_NET.shortest && text.length <= ASP_NET.longest ? paddedBase64(text) : undefined
      const recipe = bytes && aspNetRecipe(bytes)
      return recipe && { recipes: [recipe] }
    },
  },
]

const ASP_NET = { shortest: 60, longest: 800, saltLeast: 16, saltMost: 128, digests: ['sha1', 'sha256', 'sha512'] }

/** A byte for the version, the parameters, salt and key. */
function aspNetRecipe(bytes: Buffer): Recipe | undefined {
  if (bytes[0] === 0 && bytes.length === 49)
    return pbkdf2Recipe({ digest: 'sha1', iterations: 1_000, salt: bytes.subarray(1, 17), key: bytes.subarray(17) })
  // In version 3 the function, the iterations and the salt's length follow as big-endian words.
  if (bytes[0] !== 1) return undefined
  const [digest, saltBytes] = [ASP_NET.digests[bytes.readUInt32BE(1)], bytes.readUInt32BE(9)]
  if (digest === undefined || saltBytes < ASP_NET.saltLeast || saltBytes > ASP_NET.saltMost) return undefined
  const keyAt = 13 + saltBytes
  const [salt, key] = [bytes.subarray(13, keyAt), bytes.subarray(keyAt)]
  return pbkdf2Recipe({ digest, iterations: bytes.readUInt32BE(5), salt, key })
}
