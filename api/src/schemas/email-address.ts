/** The grammar of e-mail addresses. An address is stored and compared in one normalized form. */
import { domainToASCII, domainToUnicode } from 'node:url'

/** Limits of the normalized form, in octets of UTF-8 (RFC 5321, 4.5.3.1, and RFC 6531, 3.2). */
export const ADDRESS_MAX_BYTES = 254
export const LOCAL_PART_MAX_BYTES = 64

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
