/** A format of stored hashes: a row of the table in list.ts. */
import type { Password, Recipe } from '../methods/recipe.js'
import type { FirebaseProject, Pepper } from './settings.js'

export interface Format {
  /** As operators read it. */
  name: string
  /** Who writes it. */
  makers: string
  /** Too fast to rest in the table: an import has it hashed with argon2id (wrapped.ts). */
  isWeak?: true
  /** Reads a stored hash, whatever it costs; undefined for a text that its makers do not write. */
  read(text: string, context: FormatContext): Reading | undefined
}

export interface Reading {
  /** What the text may have been made with, in the order of trying: it does not always tell. */
  recipes: [Recipe, ...Recipe[]]
  /** What the old system may have hashed for a typed password, in the order of trying [itself]. */
  textsOf?(password: Password): Password[]
  /** Whether the old system took this password for another, of which a new hash would not be. */
  isAmbiguous?(password: string): boolean
  /** As the format says, where it is in an envelope. */
  isWeak?: boolean
}

/** Whether a stored hash is too fast to rest in the table. */
export function isWeak(reading: Reading & { format: Format }): boolean {
  return reading.isWeak ?? reading.format.isWeak ?? false
}

export interface FormatContext {
  /** Reads a text by all formats. */
  read(text: string): (Reading & { format: Format }) | undefined
  /** The project whose accounts were imported from Firebase, if there is one. */
  firebase: FirebaseProject | undefined
  /** Secrets of old systems, by name. */
  peppers: readonly Pepper[]
}

/** The groups of a pattern, empty where they took no part. */
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

/** A format that is too fast to rest in the table. */
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
 * Whether a key has a usual length. A key of another length is a truncated text, unless the text
 * states the length: a shorter key is the beginning of a longer one, and would still match.
 */
export function isUsualKey(key: Buffer): boolean {
  return [16, 20, 24, 32, 48, 50, 64, 128, 256, 512].includes(key.length)
}
