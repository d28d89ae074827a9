/**
 * Hashes of what the old system made of a password, where their text does not tell: peppered,
 * digested, escaped or trimmed. An import writes the steps before the stored hash,
 * `$of$<step>,<step>$<stored hash>`, and the next login replaces the whole.
 */
import { isUtf8 } from 'node:buffer'
import { createHash, createHmac } from 'node:crypto'
import type { Password } from '../methods/recipe.js'
import { type Format, nested } from './format.js'
import type { Pepper } from './settings.js'

/** Text is hashed as UTF-8. A pepper that is no UTF-8 makes bytes of it. */
type Step = (password: Password) => Password

const ofText: Record<string, Step> = {
  html: escapedHtml,
  slashes: slashed,
  trim: trimmed,
  nfc: (password) => changed(password, (text) => text.normalize('NFC')),
  lower: (password) =>
    typeof password === 'string'
      ? password.toLowerCase()
      : changed(password, (text) => text.replace(/[A-Z]/g, lowerCase)),
}

const lowerCase = (letters: string) => letters.toLowerCase()

/** Bytes that are no UTF-8 are changed as PHP changes them: a character is a byte. */
function changed(password: Password, change: (text: string) => string): Password {
  if (typeof password === 'string') return change(password)
  return Buffer.from(change(Buffer.from(password).toString('latin1')), 'latin1')
}

/** A text as long as that is one. */
function followedBy(password: Password, pepper: Buffer): Password {
  return typeof password === 'string' && isUtf8(pepper)
    ? password + pepper.toString()
    : Buffer.concat([Buffer.from(password), pepper])
}

const DIGEST = /^(md5|sha1|sha256|sha384|sha512)(-base64)?$/
const KEYED = /^(pepper|hmac-(sha1|sha256|sha384|sha512)(-base64)?):([\w-]{1,32})$/
const PATTERN = /^\$of\$([\w:,-]{1,128})\$(.+)$/

export const madeOf: Format = {
  name: 'hash of what was made of the password',
  makers: 'Devise with a pepper, Flask-Security, Meteor, vBulletin 5, phpBB, MyBB: by an import with --made-of',
  read(text, context) {
    const [, names = '', inner] = PATTERN.exec(text) ?? []
    const steps = stepsOf(names, context.peppers)
    const reading = steps && nested(context, inner, ['bcrypt', 'argon2', 'pbkdf2', 'scrypt', 'digest'])
    if (steps === undefined || reading === undefined) return undefined
    const made = (password: Password) => steps.reduce<Password>((text, step) => step(text), password)
    return {
      recipes: reading.recipes,
      textsOf: (password) => reading.textsOf?.(made(password)) ?? [made(password)],
      ...(names.split(',').includes('trim') ? { isAmbiguous: (password) => trimmed(password) !== password } : {}),
    }
  },
}

/** The steps of a comma-separated list; undefined for an unknown step or pepper. */
export function stepsOf(names: string, peppers: readonly Pepper[]): Step[] | undefined {
  const steps = names.split(',').map((name) => stepOf(name, peppers))
  return steps.every((step) => step !== undefined) ? steps : undefined
}

function stepOf(name: string, peppers: readonly Pepper[]): Step | undefined {
  const [, digest, base64] = DIGEST.exec(name) ?? []
  if (digest !== undefined)
    return (password) =>
      createHash(digest)
        .update(password)
        .digest(base64 ? 'base64' : 'hex')
  const [, kind, hmac = '', hmacBase64, pepperName] = KEYED.exec(name) ?? []
  if (kind === undefined) return Object.hasOwn(ofText, name) ? ofText[name] : undefined
  const pepper = peppers.find((known) => known.name === pepperName)?.secret
  if (pepper === undefined) return undefined
  if (kind === 'pepper') return (password) => followedBy(password, pepper)
  return (password) =>
    createHmac(hmac, pepper)
      .update(password)
      .digest(hmacBase64 ? 'base64' : 'hex')
}

/** PHP's addslashes(), which WordPress applies to all that a form sends. */
export function slashed(password: Password): Password {
  return changed(password, (text) => text.replace(/['"\\]/g, '\\$&').replaceAll('\0', '\\0'))
}

/** PHP's trim(). */
export function trimmed(password: Password): Password {
  return changed(password, (text) => text.replace(/^[ \t\n\r\0\v]+|[ \t\n\r\0\v]+$/g, ''))
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** PHP's htmlspecialchars() as phpBB and MyBB call it: single quotes stay. */
export function escapedHtml(password: Password): Password {
  return changed(password, (text) => text.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? character))
}
