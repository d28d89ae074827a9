/**
 * Weak digests of other systems inside argon2, so that no weak digest is stored:
 * `$wrapped$<digest program>$argon2id$…`, the argon2 hash of the digest in hexadecimal.
 */
import { type DigestProgram, decodeCrypt64, type PlainDigest, plainDigests } from '../methods/digest-programs.js'
import type { DigestRecipe, Recipe } from '../methods/recipe.js'
import { argon2Reading } from './argon2-bcrypt.js'
import type { Format, Reading } from './format.js'

/** The longest salt. An import refuses longer ones, which could not be read again. */
export const SALT_MAX_BYTES = 128

const PATTERN = /^\$wrapped\$([a-z0-9-]+(?:,[a-z0-9-]+)*)\$([A-Za-z0-9_-]{0,171})(\$argon2id\$.+)$/

export const wrapped: Format = {
  name: 'weak digest inside argon2id',
  makers: 'an import of weak digests',
  read(text): Reading | undefined {
    const [, names = '', encoded = '', argon2id = ''] = PATTERN.exec(text) ?? []
    const outer = argon2Reading(argon2id)?.recipes[0]
    if (outer?.method !== 'argon2') return undefined
    const salt = Buffer.from(encoded, 'base64url')
    const programs = names.split(',').map((name) => programOf(name, salt))
    const [first, ...others] = programs.filter((program) => program !== undefined)
    if (first === undefined || programs.length !== others.length + 1) return undefined
    const recipeOf = (inner: DigestProgram): Recipe => ({ method: 'wrapped', inner, outer })
    return { recipes: [recipeOf(first), ...others.map(recipeOf)] }
  },
}

/** The text to be hashed with argon2id, and the stored hash that its hash makes. */
export interface Wrapping {
  /** The digest in hexadecimal. */
  text: string
  store(outer: string): string
}

/** Undefined for digests that are not weak, or have a salt that is too long. */
export function wrappingOf(recipes: readonly Recipe[]): Wrapping | undefined {
  const digests = recipes.filter((recipe) => recipe.method === 'digest')
  const [first] = digests
  const salt = first && saltOf(first.program)
  const names = digests.map(({ program }) => nameOf(program))
  if (first === undefined || salt === undefined || salt.length > SALT_MAX_BYTES || digests.length !== recipes.length)
    return undefined
  if (names.includes(undefined)) return undefined
  return {
    text: bytesOf(first).toString('hex'),
    store: (outer) => `$wrapped$${names.join(',')}$${salt.toString('base64url')}${outer}`,
  }
}

function bytesOf({ text, encoding }: DigestRecipe): Buffer {
  return encoding === 'crypt64' ? decodeCrypt64(text) : Buffer.from(text, encoding)
}

function saltOf(program: DigestProgram): Buffer | undefined {
  return program.kind === 'plain' || program.kind === 'md5-crypt' ? Buffer.from(program.salt) : undefined
}

function nameOf(program: DigestProgram): string | undefined {
  if (program.kind === 'md5-crypt') return program.magic === '$1$' ? 'md5-crypt' : 'apr1'
  return program.kind === 'plain' && program.rounds === 1 ? `${program.digest}-${program.place}` : undefined
}

function programOf(name: string, salt: Buffer): DigestProgram | undefined {
  if (name === 'md5-crypt' || name === 'apr1')
    return { kind: 'md5-crypt', magic: name === 'apr1' ? '$apr1$' : '$1$', salt: salt.toString() }
  const [digestName, place] = name.split('-')
  const digest = plainDigests.find((known): known is PlainDigest => known === digestName)
  if (digest === undefined || (place !== 'before' && place !== 'after' && place !== 'key')) return undefined
  return { kind: 'plain', digest, salt, place, rounds: 1 }
}
