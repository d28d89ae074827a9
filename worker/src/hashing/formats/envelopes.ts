/** Stored hashes of other formats in an envelope: a prefix that says which algorithm it is, or a record of PHP. */
import type { Recipe } from '../methods/recipe.js'
import { type Format, nested } from './format.js'

interface Envelope {
  /** Of the whole text, with what is inside as its group. */
  pattern: RegExp
  methods: readonly Recipe['method'][]
  /** What stands before the group and belongs to the inner text. */
  before?: string
}

function envelopes(name: string, makers: string, kinds: readonly Envelope[]): Format {
  return {
    name,
    makers,
    read(text, context) {
      for (const { pattern, methods, before = '' } of kinds) {
        const inner = pattern.exec(text)?.[1]
        if (inner !== undefined) return nested(context, before + inner, methods)
      }
      return undefined
    },
  }
}

export const djangoPrefix = envelopes('Django prefix', 'Django', [
  { pattern: /^argon2(\$argon2.*)$/, methods: ['argon2'] },
  { pattern: /^bcrypt\$(\$2.*)$/, methods: ['bcrypt'] },
])

/** DelegatingPasswordEncoder. Its other encoders are in spring.ts. */
export const springPrefix = envelopes('Spring prefix', 'Spring Security', [
  { pattern: /^\{bcrypt\}(\$2.*)$/, methods: ['bcrypt'] },
  { pattern: /^\{argon2(?:@SpringSecurity_v5_8)?\}(\$argon2.*)$/, methods: ['argon2'] },
  { pattern: /^\{ldap\}(\{S?SHA\}.*)$/, methods: ['digest'] },
])

export const directoryPrefix = envelopes('directory prefix', 'OpenLDAP, 389 Directory Server, Dovecot', [
  { pattern: /^\{ARGON2(?:ID|I)?\}(\$argon2.*)$/, methods: ['argon2'] },
  { pattern: /^\{BLF-CRYPT\}(\$2.*)$/, methods: ['bcrypt'] },
  { pattern: /^\{(?:SHA256|SHA512|MD5)-CRYPT\}(\$[156]\$.*)$/, methods: ['digest'] },
  { pattern: /^\{(?:CRYPT|crypt)\}(\$.*)$/, methods: ['bcrypt', 'digest', 'scrypt'] },
])

export const nextcloud = envelopes('Nextcloud prefix', 'Nextcloud, ownCloud', [
  { pattern: /^1\|(\$2.*)$/, methods: ['bcrypt'] },
  { pattern: /^[23]\|(\$argon2.*)$/, methods: ['argon2'] },
])

export const xenforo = envelopes('XenForo record', 'XenForo 1 and 2', [
  { pattern: /^a:1:\{s:4:"hash";s:60:"(\$2y.{57})";\}$/, methods: ['bcrypt'] },
])
