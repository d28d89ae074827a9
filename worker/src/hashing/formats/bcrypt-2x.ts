/**
 * bcrypt `2x`: hashes that crypt_blowfish made before 1.1 (2011), whose bytes above 127 were sign-extended when four of them were put
 * together to a word, so that each filled the bytes before it with ones (CVE-2011-2483). Systems that were upgraded marked those hashes
 * `2x`. For passwords in ASCII they are as any.
 */
import { timingSafeEqual } from 'node:crypto'
import { bcryptReadsWhole } from '@spillway/client/protocol/policy'
import { type BcryptSetting, parseSetting } from '@spillway/client/protocol/setting'
import type { Algorithm, Verifier } from '../algorithm.js'
import type { BcryptCost } from '../bcrypt.js'

/** The key schedule takes so many words of four bytes: the password with its NUL, again and again. */
const KEY_WORDS = 18
const DIGEST_LENGTH = 31

const PATTERN = /^\$2x(\$\d{2}\$[./A-Za-z0-9]{21}[.Oeu])([./A-Za-z0-9]{31})$/

export function bcrypt2x(bcrypt: Algorithm<BcryptCost, BcryptSetting>): Verifier {
  return {
    ...bcrypt,
    recognizes(storedHash) {
      const [, setting, digest] = PATTERN.exec(storedHash) ?? []
      return bcrypt.recognizes(`$2b${setting}${digest}`)
    },
    async verify(password, storedHash, signal) {
      const [, text, digest = ''] = PATTERN.exec(storedHash) ?? []
      const setting = parseSetting(`$2b${text}`)
      if (setting?.algorithm !== 'bcrypt') return false
      const isWhole = bcryptReadsWhole(password)
      // Of 72 bytes nothing is left for bcrypt to add or repeat, so that these are the words of its key.
      const key = signExtendedKey(isWhole ? password : '')
      const hash = await bcrypt.hashExactly({ setting: '', password: key.toString('base64') }, setting, signal)
      return isWhole && timingSafeEqual(Buffer.from(hash?.slice(-DIGEST_LENGTH) ?? ''), Buffer.from(digest))
    },
  }
}

function signExtendedKey(password: string): Buffer {
  const text = Buffer.from(`${password}\0`)
  const key = Buffer.alloc(4 * KEY_WORDS)
  for (let word = 0; word < KEY_WORDS; word++) {
    let value = 0
    for (let at = 4 * word; at < 4 * word + 4; at++) value = (value << 8) | text.readInt8(at % text.length)
    key.writeInt32BE(value, 4 * word)
  }
  return key
}
