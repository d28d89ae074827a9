/** The grammar of e-mail addresses. An address has one form, in which it is stored and compared. */
import { domainToASCII, domainToUnicode } from 'node:url'

/** Limits of that form, in octets of UTF-8 (RFC 5321, 4.5.3.1, and RFC 6531, 3.2). */
export const ADDRESS_MAX_BYTES = 254
export const LOCAL_PART_MAX_BYTES = 64

/**
 * The one form of an address; undefined for any other text. Mailboxes that a server calls the same
 * (`ada+shop@`, `a.d.a@`) are different addresses here.
 */
export function parseEmailAddress(text: string): string | undefined {
  // JavaScript takes the byte order mark for a blank.
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

/** The name and the address of a sender, of `Shop <no-reply@example.com>` or an address alone. */
export function parseSender(text: string): { name: string; address: string } | undefined {
  const [, name = '', bracketed] = /^([^<>@\p{Cc}]+) <([^<>]+)>$/u.exec(text) ?? []
  const address = parseEmailAddress(bracketed ?? text)
  return address === undefined ? undefined : { name, address }
}

/**
 * Characters of a dot-atom beside dots (RFC 5322, 3.2.3; RFC 6531, 3.3). Beyond ASCII none that are
 * invisible, change the direction, or are unassigned: different addresses would look alike. U+2800
 * is invisible.
 */
const atom =
  /^(?!\p{M})(?:[a-z0-9!#$%&'*+/=?^_`{|}~-]|(?![\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\u2800])[^\0-\x7f])+$/u

/**
 * Lower case by Unicode's rules (no locale's), NFC. Letters that Unicode calls compatible with
 * others are refused: some mail servers take them for those. Quotes allow dots where a dot-atom
 * does not (`"a..b"`). Mail software disagrees on a quoted `@` or blank (CVE-2025-13033).
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
 * Punycode that is still there could not be decoded: from Node 24 on it stays as it is.
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

/** UTS 46 passes over some of these: two domains would look alike and be the same. */
const unseen = /[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\u2800]/u
