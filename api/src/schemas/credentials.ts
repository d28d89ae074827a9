/** Validation and normalization of e-mail addresses and passwords. */
import { isIP } from 'node:net'
import { domainToASCII, domainToUnicode } from 'node:url'

/** Limits of a normalized address, in octets of UTF-8 (RFC 5321, 4.5.3.1, and RFC 6531, 3.2). */
const ADDRESS_MAX_BYTES = 254
const LOCAL_PART_MAX_BYTES = 64
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

// The grammar of e-mail addresses. An address is stored and compared in one normalized form.

/**
 * The normalized form of an address; undefined for any other text. Addresses that a server maps to
 * the same mailbox (`ada+shop@`, `a.d.a@`) are different here.
 */
export function parseEmailAddress(text: string): string | undefined {
  // JavaScript treats the byte order mark as white space.
  if (!text.isWellFormed() || text.includes('\ufeff')) return undefined
  const trimmed = text.trim()
  const at = trimmed.lastIndexOf('@')
  if (at < 0) return undefined
  const localPart = localPartOf(trimmed.slice(0, at))
  const domain = domainOf(trimmed.slice(at + 1))
  if (localPart === undefined || domain === undefined) return undefined
  const address = `${localPart}@${domain}`
  const fits = Buffer.byteLength(localPart) <= LOCAL_PART_MAX_BYTES && Buffer.byteLength(address) <= ADDRESS_MAX_BYTES
  return fits ? address : undefined
}

/** The name and address in `Shop <no-reply@example.com>`, or in an address without a name. */
export function parseSender(text: string): { name: string; address: string } | undefined {
  const [, name = '', bracketed] = /^([^<>@\p{Cc}]+) <([^<>]+)>$/u.exec(text) ?? []
  const address = parseEmailAddress(bracketed ?? text)
  return address === undefined ? undefined : { name, address }
}

/**
 * Characters of a dot-atom except dots (RFC 5322, 3.2.3; RFC 6531, 3.3). Beyond ASCII, characters that
 * are invisible, unassigned or change the direction are refused: different addresses would look
 * alike. U+2800 is invisible.
 */
const atom =
  /^(?!\p{M})(?:[a-z0-9!#$%&'*+/=?^_`{|}~-]|(?![\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\u2800])[^\0-\x7f])+$/u

/**
 * Lower case by the rules of Unicode, not of a locale, in NFC. Letters that NFKC would replace are
 * refused: some mail servers replace them. Quotes allow dots where a dot-atom does not (`"a..b"`). A
 * quoted `@` or space is refused: mail software parses it differently (CVE-2025-13033).
 */
function localPartOf(text: string): string | undefined {
  const lower = text.toLowerCase().normalize('NFC')
  if (lower.normalize('NFKC') !== lower) return undefined
  const quoted = /^"([^"]+)"$/.exec(lower)?.[1]
  const atoms = (quoted ?? lower).split('.')
  if (atoms.every((part) => atom.test(part))) return atoms.join('.')
  return quoted !== undefined && atoms.every((part) => part === '' || atom.test(part)) ? lower : undefined
}

/** A label of a domain in ASCII: letters, digits and inner hyphens (RFC 1123, 2.1). */
const asciiLabel = /^(?!-)[a-z0-9-]{1,63}(?<!-)$/
/**
 * Letters, marks and digits of IDNA 2008, and its characters with a context (RFC 5892, 2 and A).
 * Remaining Punycode is refused: Node 24 and later keep it if they cannot decode it.
 */
const label =
  /^(?!\p{M}|xn--)(?:[\p{L}\p{M}\p{Nd}\u00b7\u0375\u05f3\u05f4\u06fd\u06fe\u0f0b\u3007\u30fb-]|\u200c|\u200d)+$/u

/**
 * ASCII (UTS 46, nontransitional), so that every spelling of a domain is one. Two labels at least:
 * a mail server completes a single one by its own domain. No address literals.
 */
function domainOf(text: string): string | undefined {
  // Node reads more than a domain: a port, a path, an escape, a number that is an address.
  if (!/^(?:[a-z0-9.-]|[^\0-\x7f])+$/iu.test(text) || unseen.test(text)) return undefined
  // Lower case first: versions of Unicode differ about a capital sharp s.
  const ascii = domainToASCII(text.toLowerCase())
  const labels = ascii.split('.')
  if (labels.length < 2 || !labels.every((part) => asciiLabel.test(part)) || /^\d+$/.test(labels.at(-1) ?? ''))
    return undefined
  const readable = domainToUnicode(ascii)
  return readable.split('.').every((part) => label.test(part)) && domainToASCII(readable) === ascii ? ascii : undefined
}

/** UTS 46 ignores some of these, so different texts would be the same domain. */
const unseen = /[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\u2800]/u
