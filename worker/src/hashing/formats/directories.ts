/** PBKDF2 of directories and of Atlassian's products: a scheme in braces before the parameters. */
import { pbkdf2Recipe } from './derived.js'
import { formatOf } from './format.js'
import { adaptedPair, hexBytes, paddedBase64, utf8Bytes } from './texts.js'

export const ldapPbkdf2 = formatOf(
  'LDAP PBKDF2',
  'OpenLDAP, 389 Directory Server, passlib',
  /^\{PBKDF2(?:-SHA(1|256|512))?\}(\d{1,9})\$([A-Za-z0-9./+]+=*)\$([A-Za-z0-9./+]+=*)$/,
  ([bits, iterations, salt, key]) =>
    pbkdf2Recipe({ digest: `sha${bits || 1}`, iterations, ...adaptedPair(salt, key), keyBytes: 'digest' }),
)

/** Four bytes of iterations, 64 of salt, 256 of key. */
export const freeIpa = formatOf(
  'FreeIPA PBKDF2',
  'FreeIPA, 389 Directory Server before 2',
  /^\{PBKDF2_SHA256\}([A-Za-z0-9+/]{432})$/,
  ([text]) => {
    const bytes = paddedBase64(text)
    if (bytes === undefined) return undefined
    const [salt, key] = [bytes.subarray(4, 68), bytes.subarray(68)]
    return pbkdf2Recipe({ digest: 'sha256', iterations: bytes.readUInt32BE(), salt, key, keyBytes: 256 })
  },
)

export const atlassian = formatOf(
  'Atlassian PBKDF2',
  'Jira, Confluence, Crowd',
  /^\{PKCS5S2\}([A-Za-z0-9+/]{64})$/,
  ([text]) => {
    const bytes = paddedBase64(text)
    const [salt, key] = [bytes?.subarray(0, 16), bytes?.subarray(16)]
    return pbkdf2Recipe({ digest: 'sha1', iterations: 10_000, salt, key, keyBytes: 32 })
  },
)

export const dovecotPbkdf2 = formatOf(
  'Dovecot PBKDF2',
  'Dovecot',
  /^\{PBKDF2\}\$1\$([^$]{1,64})\$(\d{1,9})\$([0-9a-f]{40})$/,
  ([salt, iterations, key]) => pbkdf2Recipe({ digest: 'sha1', iterations, salt: utf8Bytes(salt), key: hexBytes(key) }),
)
