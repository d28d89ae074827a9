/** What counts as an e-mail address and a password, and the one form in which each is compared. */

/** Of an address in the form in which it is compared, in octets of UTF-8 (RFC 5321, 4.5.3.1, and RFC 6531, 3.2). */
const ADDRESS_MAX_BYTES = 254
const LOCAL_PART_MAX_BYTES = 64

const PASSWORD_MAX_BYTES = 1_024
/** NIST SP 800-63B-4, 3.1.1.2: for a password that is not all there is to a login. PASSWORD_MIN_LENGTH may ask for more. */
const NEW_PASSWORD_MIN_LENGTH = 8

/**
 * The form in which addresses are compared: trimmed, lower-cased by Unicode's rules, not a locale's, and composed (NFC).
 */
export function normalizeEmail(email: string): string {
  return email.trim().toLowerCase().normalize('NFC')
}

/**
 * The form in which a password is hashed: NFKC, so that the same password typed on another keyboard or system is the same
 * (NIST SP 800-63B, 3.1.1.2). Nothing is trimmed or cut.
 */
export function normalizePassword(password: string): string {
  return password.normalize('NFKC')
}

/**
 * Checks for the JSON schema formats below. Sizes in bytes are those of what will be hashed. None is called as a format
 * that JSON Schema or OpenAPI knows, such as `password`: theirs, which checks nothing, would take the place of ours.
 */
export const formats = {
  address: isAddress,
  'current-password': isPassword,
  'new-password': (value: string) => isPassword(value) && lengthOf(value) >= NEW_PASSWORD_MIN_LENGTH,
}

/** What to tell the client when a format does not fit. */
export const formatMessages: Record<keyof typeof formats, string> = {
  address: `must be an e-mail address of at most ${ADDRESS_MAX_BYTES} bytes, ${LOCAL_PART_MAX_BYTES} before the at sign`,
  'current-password': `must be text of 1 to ${PASSWORD_MAX_BYTES} bytes`,
  'new-password': `must be text of at least ${NEW_PASSWORD_MIN_LENGTH} characters and at most ${PASSWORD_MAX_BYTES} bytes`,
}

/**
 * Something, an at sign, something, in any script; whether it exists only a message to it can tell. Its length is that of the
 * form in which it is compared and kept: lower case and NFC make one letter up to three times as long. Control characters are in
 * no address, and PostgreSQL takes no NUL. What cannot be seen, or turns the direction, would make different addresses look alike.
 */
function isAddress(value: string): boolean {
  if (!/^\s*[^\s@\p{Cc}]+@[^\s@\p{Cc}]+\s*$/u.test(value) || unseen.test(value) || !value.isWellFormed()) return false
  const address = normalizeEmail(value)
  const localPart = address.slice(0, address.indexOf('@'))
  return Buffer.byteLength(address) <= ADDRESS_MAX_BYTES && Buffer.byteLength(localPart) <= LOCAL_PART_MAX_BYTES
}

/** U+2800 is the braille pattern without a dot: a symbol to Unicode, and a blank to the eye. */
const unseen = /[\p{Cf}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\u2800]/u

// Half a surrogate pair would become U+FFFD on the way to bytes, and different passwords the same.
function isPassword(value: string): boolean {
  const bytes = Buffer.byteLength(normalizePassword(value))
  return bytes >= 1 && bytes <= PASSWORD_MAX_BYTES && value.isWellFormed()
}

/** How many characters a password has: code points of the form in which it is hashed, as NIST SP 800-63B-4, 3.1.1.2, counts. */
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
// Lengths in characters for those who generate clients: a character is at least one of the bytes that the formats count.
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
