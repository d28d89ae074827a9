/** PBKDF2 as PHC strings, and as frameworks for Python, Node and .NET write it. */
import { pbkdf2Recipe } from './derived.js'
import { type Format, formatOf } from './format.js'
import { adaptedBase64, adaptedPair, base64Pair, hexBytes, paddedBase64, urlBase64, utf8Bytes } from './texts.js'

export const phcPbkdf2 = formatOf(
  'PBKDF2',
  'PHC strings: Keycloak imports, Ory Kratos, @phc/pbkdf2',
  /^\$pbkdf2-(sha\d+)\$i=(\d{1,9})(?:,l=(\d{1,4}))?\$([A-Za-z0-9+/]+=*)\$([A-Za-z0-9+/]+=*)$/,
  ([digest, iterations, length, salt, key]) =>
    pbkdf2Recipe({ digest, iterations, ...base64Pair(salt, key), keyBytes: length ? Number(length) : undefined }),
)

/** The salt is used as text. */
export const djangoPbkdf2 = formatOf(
  'Django PBKDF2',
  'Django, passlib',
  /^pbkdf2_(sha\d+)\$(\d{1,9})\$([^$]{1,128})\$([A-Za-z0-9+/]+=*)$/,
  ([digest, iterations, salt, key]) =>
    pbkdf2Recipe({ digest, iterations, salt: utf8Bytes(salt), key: paddedBase64(key), keyBytes: 'digest' }),
)

export const werkzeugPbkdf2 = formatOf(
  'Werkzeug PBKDF2',
  'Werkzeug, Flask',
  /^pbkdf2:(sha\d+):(\d{1,9})\$([^$]{1,128})\$([0-9a-f]+)$/,
  ([digest, iterations, salt, key]) =>
    pbkdf2Recipe({ digest, iterations, salt: utf8Bytes(salt), key: hexBytes(key), keyBytes: 'digest' }),
)

export const passlibPbkdf2 = formatOf(
  'passlib PBKDF2',
  'passlib, Zitadel',
  /^\$pbkdf2(?:-(sha256|sha512))?\$(\d{1,9})\$([A-Za-z0-9./+]+=*)\$([A-Za-z0-9./+]+=*)$/,
  ([digest, iterations, salt, key]) =>
    pbkdf2Recipe({ digest: digest || 'sha1', iterations, ...adaptedPair(salt, key), keyBytes: 'digest' }),
)

/** A digest of each of some functions. The last one is verified: the strongest, as passlib sorts them by name. */
export const scram = formatOf(
  'passlib scram',
  'passlib',
  /^\$scram\$(\d{1,9})\$([A-Za-z0-9./]+)\$(sha-\d+=[A-Za-z0-9./]+(?:,sha-\d+=[A-Za-z0-9./]+)*)$/,
  ([iterations, salt, digests]) => {
    const [name = '', key = ''] = digests.split(',').at(-1)?.split('=') ?? []
    const parts = { salt: adaptedBase64(salt), key: adaptedBase64(key) }
    return pbkdf2Recipe({ digest: name.replace('-', ''), iterations, ...parts, keyBytes: 'digest' })
  },
)

/** The rounds are hexadecimal; an empty text means 400. */
const litzenberger = formatOf(
  'PBKDF2 $p5k2$',
  'passlib, Dwayne Litzenberger, Cryptacular',
  /^(\$p5k2\$([0-9a-f]{0,8})\$[A-Za-z0-9./]{1,64})\$([A-Za-z0-9./]{32})$/,
  ([salt, rounds, key]) => {
    const iterations = rounds === '' ? 400 : Number.parseInt(rounds, 16)
    return pbkdf2Recipe({
      ...{ digest: 'sha1', iterations, salt: utf8Bytes(salt), key: adaptedBase64(key), keyBytes: 24 },
    })
  },
)

const cryptacular = formatOf(
  litzenberger.name,
  litzenberger.makers,
  /^\$p5k2\$([0-9a-f]{1,8})\$([A-Za-z0-9_-]+={0,2})\$([A-Za-z0-9_-]{27}=)$/,
  ([rounds, salt, key]) => {
    const iterations = Number.parseInt(rounds, 16)
    return pbkdf2Recipe({
      ...{ digest: 'sha1', iterations, salt: urlBase64(salt), key: urlBase64(key), keyBytes: 20 },
    })
  },
)

export const p5k2: Format = {
  ...litzenberger,
  read: (text, context) => litzenberger.read(text, context) ?? cryptacular.read(text, context),
}

export const grub = formatOf(
  'GRUB PBKDF2',
  'GRUB, passlib',
  /^grub\.pbkdf2\.sha512\.(\d{1,9})\.([0-9A-F]+)\.([0-9A-F]{128})$/,
  ([iterations, salt, key]) => pbkdf2Recipe({ digest: 'sha512', iterations, salt: hexBytes(salt), key: hexBytes(key) }),
)

export const mattermost = formatOf(
  'Mattermost PBKDF2',
  'Mattermost 11 and later',
  /^\$pbkdf2\$f=SHA(256|512),w=(\d{1,9}),l=(\d{1,4})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/,
  ([bits, iterations, length, salt, key]) =>
    pbkdf2Recipe({ digest: `sha${bits}`, iterations, ...base64Pair(salt, key), keyBytes: Number(length) }),
)

export const mediawiki = formatOf(
  'MediaWiki PBKDF2',
  'MediaWiki',
  /^:pbkdf2:(sha\d+):(\d{1,9}):(\d{1,4}):([A-Za-z0-9+/]+=*):([A-Za-z0-9+/]+=*)$/,
  ([digest, iterations, length, salt, key]) => {
    const parts = { salt: paddedBase64(salt), key: paddedBase64(key), keyBytes: Number(length) }
    return pbkdf2Recipe({ digest, iterations, ...parts })
  },
)

export const seafile = formatOf(
  'Seafile PBKDF2',
  'Seafile',
  /^PBKDF2SHA256\$(\d{1,9})\$([0-9a-f]{64})\$([0-9a-f]{64})$/,
  ([iterations, salt, key]) => pbkdf2Recipe({ digest: 'sha256', iterations, salt: hexBytes(salt), key: hexBytes(key) }),
)
