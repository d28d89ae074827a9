/** A format of stored hashes, which is a row of the table in list.ts, and its texts. */
import { decodeBase64, decodeBase64Pair } from '@spillway/queue/wire/stored-hash'
import type { Password, Recipe } from '../methods/recipe.js'
import type { FirebaseProject, Pepper } from './settings.js'

export interface Format {
  /** The name that operators read. */
  name: string
  /** The systems that write it. */
  makers: string
  /** Too fast to be stored as it is: an import hashes it with argon2id (wrapped.ts). */
  isWeak?: true
  /** Reads a stored hash, whatever it costs; undefined for a text that its makers do not write. */
  read(text: string, context: FormatContext): Reading | undefined
}

export interface Reading {
  /** The recipes that may have made the text, in the order of trying. */
  recipes: [Recipe, ...Recipe[]]
  /** The texts that the old system may have hashed for a password, in order of trying [itself]. */
  textsOf?(password: Password): Password[]
  /** Whether the old system confused this password with another one, as a new hash would not. */
  isAmbiguous?(password: string): boolean
  /** `isWeak` of the format inside, if the hash is in an envelope. */
  isWeak?: boolean
}

/** Whether a stored hash is too fast to be stored as it is. */
export function isWeak(reading: Reading & { format: Format }): boolean {
  return reading.isWeak ?? reading.format.isWeak ?? false
}

export interface OldSecrets {
  /** The project whose accounts were imported from Firebase, if there is one. */
  firebase: FirebaseProject | undefined
  /** Secrets of old systems, by name. */
  peppers: readonly Pepper[]
}

export interface FormatContext extends OldSecrets {
  /** Reads a text with all formats. */
  read(text: string): (Reading & { format: Format }) | undefined
}

/** The groups of a pattern; a group that took no part is empty. */
type Groups = readonly [string, string, string, string, string, string]

/** A format whose texts match one pattern. `read` makes a recipe or a reading of the groups. */
export function formatOf(
  name: string,
  makers: string,
  pattern: RegExp,
  read: (groups: Groups, context: FormatContext, text: string) => Recipe | Reading | undefined,
): Format {
  return {
    name,
    makers,
    read(text, context) {
      const match = pattern.exec(text)
      if (match === null) return undefined
      const [, a = '', b = '', c = '', d = '', e = '', f = ''] = match
      const made = read([a, b, c, d, e, f], context, text)
      return made === undefined || 'recipes' in made ? made : { recipes: [made] }
    },
  }
}

/** A format that is too fast to be stored as it is. */
export function weak(format: Format): Format {
  return { ...format, isWeak: true }
}

/** A format whose texts belong to other formats, behind a prefix or in an envelope. */
export function nested(
  { read }: FormatContext,
  text: string | undefined,
  methods: readonly Recipe['method'][],
): Reading | undefined {
  const reading = text === undefined ? undefined : read(text)
  if (reading === undefined || !reading.recipes.every(({ method }) => methods.includes(method))) return undefined
  return { ...reading, isWeak: isWeak(reading) }
}

/** The longest salt of a derived key. */
export const SALT_MAX_BYTES = 1_024

/**
 * A key of another length is a truncated text, unless the text states the length: a shorter key is
 * the beginning of a longer one, and would still match.
 */
export function isUsualKey(key: Buffer): boolean {
  return [16, 20, 24, 32, 48, 50, 64, 128, 256, 512].includes(key.length)
}

// Bytes as formats write them, read strictly: undefined for a text that no encoder writes.

/** Hexadecimal, all of it in lower or in upper case. */
export function hexBytes(text: string): Buffer | undefined {
  return /^(?:(?:[0-9a-f]{2})+|(?:[0-9A-F]{2})+)$/.test(text) ? Buffer.from(text, 'hex') : undefined
}

export function paddedBase64(text: string): Buffer | undefined {
  const bytes = decodeBase64(text)
  return bytes?.toString('base64') === text ? bytes : undefined
}

/** A salt and a key in base64, both padded or both unpadded. */
export function base64Pair(salt: string, key: string): { salt?: Buffer; key?: Buffer } {
  const [saltBytes, keyBytes] = decodeBase64Pair(salt, key) ?? []
  return saltBytes === undefined || keyBytes === undefined ? {} : { salt: saltBytes, key: keyBytes }
}

/** The same in passlib's base64, with dots in place of pluses, or in usual base64. */
export function adaptedPair(salt: string, key: string): { salt?: Buffer; key?: Buffer } {
  if (/[+=]/.test(salt + key)) return base64Pair(salt, key)
  return base64Pair(salt.replaceAll('.', '+'), key.replaceAll('.', '+'))
}

export function urlBase64(text: string): Buffer | undefined {
  return decodeBase64(text.replaceAll('-', '+').replaceAll('_', '/'))
}

/** Bytes that are text. */
export function utf8Bytes(text: string): Buffer {
  return Buffer.from(text)
}
