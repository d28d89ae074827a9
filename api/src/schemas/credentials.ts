/** Validation and normalization of e-mail addresses and passwords. */

/** Limits of a normalized address, in octets of UTF-8 (RFC 5321, 4.5.3.1, and RFC 6531, 3.2). */
const ADDRESS_MAX_BYTES = 254
const LOCAL_PART_MAX_BYTES = 64

const PASSWORD_MAX_BYTES = 1_024
/** Of another application's password. A worker takes no job of more than 32 KiB: this fits, escaped and sealed. */
const ANY_PASSWORD_MAX_BYTES = 3_072
/** NIST SP 800-63B-4, 3.1.1.2: the minimum for a password that is one of several factors. PASSWORD_MIN_LENGTH may require more. */
const NEW_PASSWORD_MIN_LENGTH = 8

/** Normalizes an address for comparison: trimmed, lower case by Unicode's rules (no locale's), NFC. */
export function normalizeEmail(email: string): string {
  return email.trim().toLowerCase().normalize('NFC')
}

/**
 * Normalizes a password for hashing: NFKC, because systems and keyboards encode the same characters differently (NIST SP 800-63B,
 * 3.1.1.2). Nothing is trimmed or truncated.
 */
export function normalizePassword(password: string): string {
  return password.normalize('NFKC')
}

/** A password as lists of common ones have it: whoever guesses it tries upper and lower case. */
export function fold(password: string): string {
  return normalizePassword(password).toLowerCase()
}

/**
 * JSON Schema formats. Sizes in bytes are those of the normalized text; a password of another application is not normalized, because its
 * stored hashes are of the text as it was given. The names must not be those of standard formats, such as
 * `password`: a standard format, which checks nothing, would replace ours.
 */
export const formats = {
  address: isAddress,
  'current-password': isPassword,
  'new-password': (value: string) => isPassword(value) && lengthOf(value) >= NEW_PASSWORD_MIN_LENGTH,
  'any-password': (value: string) => value.isWellFormed() && Buffer.byteLength(value) <= ANY_PASSWORD_MAX_BYTES,
}

/** The message for a value that does not match a format. */
export const formatMessages: Record<keyof typeof formats, string> = {
  address: `must be an e-mail address of at most ${ADDRESS_MAX_BYTES} bytes, ${LOCAL_PART_MAX_BYTES} before the at sign`,
  'current-password': `must be text of 1 to ${PASSWORD_MAX_BYTES} bytes`,
  'new-password': `must be text of at least ${NEW_PASSWORD_MIN_LENGTH} characters and at most ${PASSWORD_MAX_BYTES} bytes`,
  'any-password': `must be text of at most ${ANY_PASSWORD_MAX_BYTES} bytes`,
}

/**
 * Checks for an at sign between two texts in any script; whether an address exists only a message to it can show. Lengths are those of
 * the normalized address: lower case and NFC can triple a letter's length. Addresses contain no control characters, and PostgreSQL
 * stores no NUL. Invisible characters and those that change the direction would make different addresses look alike.
 */
function isAddress(value: string): boolean {
  if (!/^\s*[^\s@\p{Cc}]+@[^\s@\p{Cc}]+\s*$/u.test(value) || invisible.test(value) || !value.isWellFormed())
    return false
  const address = normalizeEmail(value)
  const localPart = address.slice(0, address.indexOf('@'))
  return Buffer.byteLength(address) <= ADDRESS_MAX_BYTES && Buffer.byteLength(localPart) <= LOCAL_PART_MAX_BYTES
}

/** U+2800, the braille pattern blank, is a symbol in Unicode, but invisible. */
const invisible = /[\p{Cf}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\u2800]/u

// Encoding replaces lone surrogates by U+FFFD, which would make different passwords equal.
function isPassword(value: string): boolean {
  const bytes = Buffer.byteLength(normalizePassword(value))
  return bytes >= 1 && bytes <= PASSWORD_MAX_BYTES && value.isWellFormed()
}

/** The length of a password: code points of its normalized form (NIST SP 800-63B-4, 3.1.1.2). */
export function lengthOf(password: string): number {
  return [...normalizePassword(password)].length
}

export const EmailField = {
  type: 'string',
  format: 'address',
  description: formatMessages.address,
  minLength: 3,
  maxLength: ADDRESS_MAX_BYTES,
  examples: ['ada@example.test'],
} as const
// maxLength, in characters, is for generated clients: a character has at least one of the bytes that the formats count.
const password = { type: 'string', maxLength: PASSWORD_MAX_BYTES, examples: ['correct horse battery staple'] } as const
export const PasswordField = {
  ...password,
  format: 'current-password',
  description: formatMessages['current-password'],
  minLength: 1,
} as const
export const NewPasswordField = {
  ...password,
  format: 'new-password',
  description: `${formatMessages['new-password']}; none that is guessed first, no name of the account or the service`,
} as const
export const MailTokenField = {
  type: 'string',
  description: 'From the link of a mail',
  minLength: 43,
  maxLength: 43,
} as const
export const AnyPasswordField = {
  type: 'string',
  format: 'any-password',
  description: `Hashed as its bytes in UTF-8, as they are; at most ${ANY_PASSWORD_MAX_BYTES}`,
  maxLength: ANY_PASSWORD_MAX_BYTES,
  examples: ['correct horse battery staple'],
} as const
