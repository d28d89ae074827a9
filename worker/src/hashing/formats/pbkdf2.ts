/** PBKDF2 as PHC strings, and as frameworks for Python, Node and .NET write it. */
import { type Pbkdf2Parts, pbkdf2Reading } from './derived.js'
import type { Format } from './format.js'
import { adaptedBase64, adaptedPair, base64Pair, hexBytes, paddedBase64, urlBase64, utf8Bytes } from './texts.js'

const PHC = /^\$pbkdf2-(sha\d+)\$i=(\d{1,9})(?:,l=(\d{1,4}))?\$([A-Za-z0-9+/]+=*)\$([A-Za-z0-9+/]+=*)$/

export const phcPbkdf2: Format = {
  name: 'PBKDF2',
  makers: 'PHC strings: Keycloak imports, Ory Kratos, @phc/pbkdf2',
  read(text) {
    const [, digest = '', iterations = '', length, salt = '', key = ''] = PHC.exec(text) ?? []
    const keyBytes = length === undefined ? undefined : Number(length)
    return pbkdf2Reading({ digest, iterations, ...base64Pair(salt, key), keyBytes })
  },
}

const DJANGO = /^pbkdf2_(sha\d+)\$(\d{1,9})\$([^$]{1,128})\$([A-Za-z0-9+/]+=*)$/

/** The salt is used as the text that it is. */
export const djangoPbkdf2: Format = {
  name: 'Django PBKDF2',
  makers: 'Django, passlib',
  read: (text) =>
    readParts(DJANGO, text, ([digest, iterations, salt, key]) => ({
      ...{ digest, iterations, salt: utf8Bytes(salt), key: paddedBase64(key), keyBytes: 'digest' },
    })),
}

const WERKZEUG = /^pbkdf2:(sha\d+):(\d{1,9})\$([^$]{1,128})\$([0-9a-f]+)$/

export const werkzeugPbkdf2: Format = {
  name: 'Werkzeug PBKDF2',
  makers: 'Werkzeug, Flask',
  read: (text) =>
    readParts(WERKZEUG, text, ([digest, iterations, salt, key]) => ({
      ...{ digest, iterations, salt: utf8Bytes(salt), key: hexBytes(key), keyBytes: 'digest' },
    })),
}

const PASSLIB = /^\$pbkdf2(-sha256|-sha512|)\$(\d{1,9})\$([A-Za-z0-9./+]+=*)\$([A-Za-z0-9./+]+=*)$/

export const passlibPbkdf2: Format = {
  name: 'passlib PBKDF2',
  makers: 'passlib, Zitadel',
  read: (text) =>
    readParts(PASSLIB, text, ([digest, iterations, salt, key]) => ({
      digest: digest === '' ? 'sha1' : digest.slice(1),
      ...{ iterations, ...adaptedPair(salt, key), keyBytes: 'digest' },
    })),
}

const SCRAM = /^\$scram\$(\d{1,9})\$([A-Za-z0-9./]+)\$(sha-\d+=[A-Za-z0-9./]+(?:,sha-\d+=[A-Za-z0-9./]+)*)$/

/** A digest of each of some functions, of which the last is verified: the strongest, as passlib sorts them by name. */
export const scram: Format = {
  name: 'passlib scram',
  makers: 'passlib',
  read: (text) =>
    readParts(SCRAM, text, ([iterations, salt, digests]) => {
      const [name = '', key = ''] = digests.split(',').at(-1)?.split('=') ?? []
      return {
        ...{ digest: name.replace('-', ''), iterations, keyBytes: 'digest' },
        ...{ salt: adaptedBase64(salt), key: adaptedBase64(key) },
      }
    }),
}

/** The rounds are hexadecimal; an empty text means 400. */
const DLITZ = /^(\$p5k2\$([0-9a-f]{0,8})\$[A-Za-z0-9./]{1,64})\$([A-Za-z0-9./]{32})$/
const CTA = /^\$p5k2\$([0-9a-f]{1,8})\$([A-Za-z0-9_-]+={0,2})\$([A-Za-z0-9_-]{27}=)$/

export const p5k2: Format = {
  name: 'PBKDF2 $p5k2$',
  makers: 'passlib, Dwayne Litzenberger, Cryptacular',
  read: (text) =>
    readParts(DLITZ, text, ([salt, iterations, key]) => ({
      ...{ digest: 'sha1', iterations: iterations === '' ? 400 : Number.parseInt(iterations, 16) },
      ...{ salt: utf8Bytes(salt), key: adaptedBase64(key), keyBytes: 24 },
    })) ??
    readParts(CTA, text, ([iterations, salt, key]) => ({
      ...{ digest: 'sha1', iterations: Number.parseInt(iterations, 16) },
      ...{ salt: urlBase64(salt), key: urlBase64(key), keyBytes: 20 },
    })),
}

const GRUB = /^grub\.pbkdf2\.sha512\.(\d{1,9})\.([0-9A-F]+)\.([0-9A-F]{128})$/

export const grub: Format = {
  name: 'GRUB PBKDF2',
  makers: 'GRUB, passlib',
  read: (text) =>
    readParts(GRUB, text, ([iterations, salt, key]) => ({
      ...{ digest: 'sha512', iterations, salt: hexBytes(salt), key: hexBytes(key) },
    })),
}

const MATTERMOST = /^\$pbkdf2\$f=SHA(256|512),w=(\d{1,9}),l=(\d{1,4})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/

export const mattermost: Format = {
  name: 'Mattermost PBKDF2',
  makers: 'Mattermost 11 and later',
  read: (text) =>
    readParts(MATTERMOST, text, ([bits, iterations, length, salt, key]) => ({
      ...{
        digest: `sha${bits}`,
        iterations,
        ...base64Pair(salt, key),
        keyBytes: Number(length),
      },
    })),
}

const MEDIAWIKI = /^:pbkdf2:(sha\d+):(\d{1,9}):(\d{1,4}):([A-Za-z0-9+/]+=*):([A-Za-z0-9+/]+=*)$/

export const mediawiki: Format = {
  name: 'MediaWiki PBKDF2',
  makers: 'MediaWiki',
  read: (text) =>
    readParts(MEDIAWIKI, text, ([digest, iterations, length, salt, key]) => ({
      ...{ digest, iterations, salt: paddedBase64(salt), key: paddedBase64(key), keyBytes: Number(length) },
    })),
}

const SEAFILE = /^PBKDF2SHA256\$(\d{1,9})\$([0-9a-f]{64})\$([0-9a-f]{64})$/

export const seafile: Format = {
  name: 'Seafile PBKDF2',
  makers: 'Seafile',
  read: (text) =>
    readParts(SEAFILE, text, ([iterations, salt, key]) => ({
      ...{ digest: 'sha256', iterations, salt: hexBytes(salt), key: hexBytes(key) },
    })),
}

type Captured = [string, string, string, string, string]

function readParts(pattern: RegExp, text: string, parts: (captured: Captured) => Pbkdf2Parts) {
  const [, a = '', b = '', c = '', d = '', e = ''] = pattern.exec(text) ?? []
  return c === '' ? undefined : pbkdf2Reading(parts([a, b, c, d, e]))
}
