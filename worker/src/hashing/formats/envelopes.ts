/**
 * Stored hashes of other formats inside a text: a prefix that names the algorithm, and
 * `$of$<step>,<step>$<stored hash>`, which an import writes where a password was peppered,
 * digested, escaped or trimmed before it was hashed.
 */
import { isUtf8 } from 'node:buffer'
import { createHash, createHmac } from 'node:crypto'
import type { Password, Recipe } from '../methods/recipe.js'
import { type Format, nested } from './format.js'
import type { Pepper } from './settings.js'

/** A pattern whose first group is the inner text, and the methods that may be inside. */
type Envelope = [pattern: RegExp, ...methods: Recipe['method'][]]

function enveloped(name: string, makers: string, ...envelopes: Envelope[]): Format {
  return {
    name,
    makers,
    read(text, context) {
      for (const [pattern, ...methods] of envelopes) {
        const inner = pattern.exec(text)?.[1]
        if (inner !== undefined) return nested(context, inner, methods)
      }
      return undefined
    },
  }
}

const prefixes: readonly Format[] = [
  enveloped('Django prefix', 'Django', [/^argon2(\$argon2.*)$/, 'argon2'], [/^bcrypt\$(\$2.*)$/, 'bcrypt']),
  // DelegatingPasswordEncoder. Its other encoders are in spring.ts.
  enveloped(
    'Spring prefix',
    'Spring Security',
    [/^\{bcrypt\}(\$2.*)$/, 'bcrypt'],
    [/^\{argon2(?:@SpringSecurity_v5_8)?\}(\$argon2.*)$/, 'argon2'],
    [/^\{ldap\}(\{S?SHA\}.*)$/, 'digest'],
  ),
  enveloped(
    'directory prefix',
    'OpenLDAP, 389 Directory Server, Dovecot',
    [/^\{ARGON2(?:ID|I)?\}(\$argon2.*)$/, 'argon2'],
    [/^\{BLF-CRYPT\}(\$2.*)$/, 'bcrypt'],
    [/^\{(?:SHA256|SHA512|MD5)-CRYPT\}(\$[156]\$.*)$/, 'digest'],
    [/^\{(?:CRYPT|crypt)\}(\$.*)$/, 'bcrypt', 'digest'],
  ),
]

/** Text is hashed as UTF-8. A pepper that is not UTF-8 turns it into bytes. */
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

/** Bytes that are not UTF-8 are changed as PHP changes them: a character is a byte. */
function changed(password: Password, change: (text: string) => string): Password {
  if (typeof password === 'string') return change(password)
  return Buffer.from(change(Buffer.from(password).toString('latin1')), 'latin1')
}

/** The password and the pepper: a text if they are text, otherwise bytes. */
function followedBy(password: Password, pepper: Buffer): Password {
  return typeof password === 'string' && isUtf8(pepper)
    ? password + pepper.toString()
    : Buffer.concat([Buffer.from(password), pepper])
}

const DIGEST = /^(md5|sha1|sha256|sha384|sha512)(-base64)?$/
const KEYED = /^(pepper|hmac-(sha1|sha256|sha384|sha512)(-base64)?):([\w-]{1,32})$/
const PATTERN = /^\$of\$([\w:,-]{1,128})\$(.+)$/

const madeOf: Format = {
  name: 'hash of what was made of the password',
  makers: 'Devise with a pepper, Flask-Security, Meteor, phpBB: by an import with --made-of',
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

export const envelopes: readonly Format[] = [...prefixes, madeOf]

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
