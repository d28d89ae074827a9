/** What counts as an e-mail address and a password, and the one form in which each is compared. */

const PASSWORD_MAX_BYTES = 1_024
const NEW_PASSWORD_MIN_BYTES = 8

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
 * Checks for the JSON schema formats below. Sizes are those of the bytes that will be hashed. None is called as a format
 * that JSON Schema or OpenAPI knows, such as `password`: theirs, which checks nothing, would take the place of ours.
 */
export const formats = {
  /**
   * Something, an at sign, something, in any script; whether it exists only a message to it can tell. Control characters
   * are in no address, and PostgreSQL takes no NUL.
   */
  address: (value: string) => /^\s*[^\s@\p{Cc}]+@[^\s@\p{Cc}]+\s*$/u.test(value) && value.isWellFormed(),
  'current-password': (value: string) => isPassword(value, 1),
  'new-password': (value: string) => isPassword(value, NEW_PASSWORD_MIN_BYTES),
}

/** What to tell the client when a format does not fit. */
export const formatMessages: Record<keyof typeof formats, string> = {
  address: 'must be an e-mail address',
  'current-password': `must be text of 1 to ${PASSWORD_MAX_BYTES} bytes`,
  'new-password': `must be text of ${NEW_PASSWORD_MIN_BYTES} to ${PASSWORD_MAX_BYTES} bytes`,
}

// Half a surrogate pair would become U+FFFD on the way to bytes, and different passwords the same.
function isPassword(value: string, minBytes: number): boolean {
  const bytes = Buffer.byteLength(normalizePassword(value))
  return bytes >= minBytes && bytes <= PASSWORD_MAX_BYTES && value.isWellFormed()
}

export const EmailField = {
  type: 'string',
  format: 'address',
  minLength: 3,
  maxLength: 320,
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
  description: formatMessages['new-password'],
} as const
