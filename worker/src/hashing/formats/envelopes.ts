/**
 * Stored hashes of other formats in an envelope: a prefix that names the algorithm, or a record of
 * PHP.
 */
import type { Recipe } from '../methods/recipe.js'
import { type Format, nested } from './format.js'

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

export const envelopes: readonly Format[] = [
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
    [/^\{(?:CRYPT|crypt)\}(\$.*)$/, 'bcrypt', 'digest', 'scrypt'],
  ),
  enveloped('Nextcloud prefix', 'Nextcloud, ownCloud', [/^1\|(\$2.*)$/, 'bcrypt'], [/^[23]\|(\$argon2.*)$/, 'argon2']),
  enveloped('XenForo record', 'XenForo 1 and 2', [/^a:1:\{s:4:"hash";s:60:"(\$2y.{57})";\}$/, 'bcrypt']),
]
