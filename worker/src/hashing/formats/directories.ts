/** PBKDF2 of directories and of Atlassian's products: a scheme in braces before the parameters. */
import { pbkdf2Reading } from './derived.js'
import type { Format } from './format.js'
import { adaptedPair, hexBytes, paddedBase64, utf8Bytes } from './texts.js'

const LDAP = /^\{PBKDF2(?:-SHA(1|256|512))?\}(\d{1,9})\$([A-Za-z0-9./+]+=*)\$([A-Za-z0-9./+]+=*)$/

export const ldapPbkdf2: Format = {
  name: 'LDAP PBKDF2',
  makers: 'OpenLDAP, 389 Directory Server, passlib',
  read(text) {
    const [, bits = '1', iterations = '', salt = '', key = ''] = LDAP.exec(text) ?? []
    const parts = { iterations, ...adaptedPair(salt, key) }
    return pbkdf2Reading({ digest: `sha${bits}`, ...parts, keyBytes: 'digest' })
  },
}

const FREEIPA = /^\{PBKDF2_SHA256\}([A-Za-z0-9+/]{432})$/
const FREEIPA_SALT_BYTES = 64

/** Four bytes of iterations, 64 of salt, 256 of key. */
export const freeIpa: Format = {
  name: 'FreeIPA PBKDF2',
  makers: 'FreeIPA, 389 Directory Server before 2',
  read(text) {
    const bytes = paddedBase64(FREEIPA.exec(text)?.[1] ?? '')
    if (bytes === undefined || bytes.length === 0) return undefined
    const keyAt = 4 + FREEIPA_SALT_BYTES
    const [salt, key] = [bytes.subarray(4, keyAt), bytes.subarray(keyAt)]
    return pbkdf2Reading({ digest: 'sha256', iterations: bytes.readUInt32BE(), salt, key, keyBytes: 256 })
  },
}

const ATLASSIAN = /^\{PKCS5S2\}([A-Za-z0-9+/]{64})$/

export const atlassian: Format = {
  name: 'Atlassian PBKDF2',
  makers: 'Jira, Confluence, Crowd',
  read(text) {
    const bytes = paddedBase64(ATLASSIAN.exec(text)?.[1] ?? '')
    const [salt, key] = [bytes?.subarray(0, 16), bytes?.subarray(16)]
    return pbkdf2Reading({ digest: 'sha1', iterations: 10_000, salt, key, keyBytes: 32 })
  },
}

const DOVECOT = /^\{PBKDF2\}\$1\$([^$]{1,64})\$(\d{1,9})\$([0-9a-f]{40})$/

export const dovecotPbkdf2: Format = {
  name: 'Dovecot PBKDF2',
  makers: 'Dovecot',
  read(text) {
    const [, salt = '', iterations = '', key = ''] = DOVECOT.exec(text) ?? []
    return pbkdf2Reading({ digest: 'sha1', iterations, salt: utf8Bytes(salt), key: hexBytes(key) })
  },
}
