/** Validation and normalization of e-mail addresses and passwords. */
import { isIP } from 'node:net'
import { ADDRESS_MAX_BYTES, LOCAL_PART_MAX_BYTES, parseEmailAddress } from './email-address.js'

const PASSWORD_MAX_BYTES = 1_024
/** For passwords of other applications: escaped and sealed, one fits into a job of 32 KiB. */
const ANY_PASSWORD_MAX_BYTES = 3_072
/** NIST SP 800-63B-4, 3.1.1.2: the minimum for one of several factors. */
const NEW_PASSWORD_MIN_LENGTH = 8

/** The widest network that may be blocked, by the version of IP. */
const LEAST_BITS = { 4: 8, 6: 19 } as const

/** Normalizes an address that a schema has validated. Throws for any other text. */
export function normalizeEmail(email: string): string {
  const address = parseEmailAddress(email)
  if (address === undefined) throw new TypeError('an address was not validated')
  return address
}

/**
 * Normalizes a password for hashing: NFKC, because keyboards encode the same characters differently
 * (NIST SP 800-63B, 3.1.1.2). Nothing is trimmed or truncated.
 */
export function normalizePassword(password: string): string {
  return password.normalize('NFKC')
}

/** The normalized password, and the typed one if it differs: an old system may have hashed it. */
export function passwordForms(password: string): { password: string; typed?: string } {
  const normalized = normalizePassword(password)
  return normalized === password ? { password } : { password: normalized, typed: password }
}

/** Folds a password for lists of common ones: attackers try upper and lower case. */
export function fold(password: string): string {
  return normalizePassword(password).toLowerCase()
}

/**
 * JSON Schema formats. They count bytes of the normalized text. A password of another application
 * is not normalized, because its hashes are of the original text. Names must differ from standard
 * formats, which check nothing and would replace ours.
 */
export const formats = {
  address: (value: string) => parseEmailAddress(value) !== undefined,
  'current-password': isPassword,
  'new-password': (value: string) => isPassword(value) && lengthOf(value) >= NEW_PASSWORD_MIN_LENGTH,
  network: (value: string) => !value.includes('%') && isAddressRange(value, LEAST_BITS),
  'plain-text': (value: string) => value.isWellFormed() && !/\p{Cc}/u.test(value),
  'any-password': (value: string) => value.isWellFormed() && Buffer.byteLength(value) <= ANY_PASSWORD_MAX_BYTES,
}

export const formatMessages: Record<keyof typeof formats, string> = {
  address: `must be an e-mail address of at most ${ADDRESS_MAX_BYTES} bytes, ${LOCAL_PART_MAX_BYTES} before the at sign, with its domain in ASCII`,
  'current-password': `must be text of 1 to ${PASSWORD_MAX_BYTES} bytes`,
  'new-password': `must be text of at least ${NEW_PASSWORD_MIN_LENGTH} characters and at most ${PASSWORD_MAX_BYTES} bytes`,
  network: `must be an IP address, or a CIDR range of at least ${LEAST_BITS[4]} bits, with IPv6 ${LEAST_BITS[6]}`,
  'plain-text': 'must be text without control characters',
  'any-password': `must be text of at most ${ANY_PASSWORD_MAX_BYTES} bytes`,
}

// UTF-8 encoding replaces lone surrogates by U+FFFD, which would make different passwords equal.
function isPassword(value: string): boolean {
  const bytes = Buffer.byteLength(normalizePassword(value))
  return bytes >= 1 && bytes <= PASSWORD_MAX_BYTES && value.isWellFormed()
}

/** Whether a text is an IP address, or a CIDR range of at least `leastBits` for its IP version. */
export function isAddressRange(text: string, leastBits: { 4: number; 6: number } = { 4: 1, 6: 1 }): boolean {
  const [address = '', bits, ...rest] = text.split('/')
  const version = isIP(address)
  if ((version !== 4 && version !== 6) || rest.length > 0) return false
  const most = version === 4 ? 32 : 128
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) >= leastBits[version] && Number(bits) <= most)
}

/** The length of a password: code points of its normalized form (NIST SP 800-63B-4, 3.1.1.2). */
export function lengthOf(password: string): number {
  return [...normalizePassword(password)].length
}

export const EmailField = {
  type: 'string',
  format: 'address',
  description: formatMessages.address,
  minLength: 5,
  maxLength: ADDRESS_MAX_BYTES,
  examples: ['ada@example.test'],
} as const
// maxLength is in characters, for generated clients; the formats count bytes.
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
  description: `${formatMessages['new-password']}. Common passwords, and names of the account or the service, are refused`,
} as const
export const NetworkField = { type: 'string', format: 'network', maxLength: 64, examples: ['192.0.2.0/24'] } as const
export const MailTokenField = {
  type: 'string',
  description: 'The token in the link of a mail',
  minLength: 43,
  maxLength: 43,
} as const
export const AnyPasswordField = {
  type: 'string',
  format: 'any-password',
  description: `Its UTF-8 bytes are hashed without normalization. At most ${ANY_PASSWORD_MAX_BYTES} bytes`,
  maxLength: ANY_PASSWORD_MAX_BYTES,
  examples: ['correct horse battery staple'],
} as const
