/**
 * scrypt as `salt:key` in hexadecimal, the salt used as the text that it is: Node's examples, with the defaults of crypto.scrypt, and
 * Better Auth and Lucia, with blocks twice as large and the password in NFKC. The texts do not tell which: both are tried, so that a wrong
 * password takes both, for every account alike: three eighths of what OWASP's Password Storage Cheat Sheet asks of scrypt.
 */
import { unpadded } from '@spillway/client/protocol/setting'
import type { Verifier } from '../algorithm.js'

const PATTERN = /^([0-9a-f]{32}):([0-9a-f]{128})$/

const origins = [
  { setting: '$scrypt$ln=14,r=8,p=1', textOf: (password: string) => password },
  { setting: '$scrypt$ln=14,r=16,p=1', textOf: (password: string) => password.normalize('NFKC') },
]

/** @param scrypt the verifier of PHC strings */
export function saltAndKey(scrypt: Verifier): Verifier {
  return {
    ...scrypt,
    recognizes: (storedHash) => PATTERN.test(storedHash),
    async verify(password, storedHash, signal) {
      const [, salt = '', key = ''] = PATTERN.exec(storedHash) ?? []
      const parts = [unpadded(Buffer.from(salt)), unpadded(Buffer.from(key, 'hex'))]
      for (const { setting, textOf } of origins) {
        if (await scrypt.verify(textOf(password), [setting, ...parts].join('$'), signal)) return true
        signal?.throwIfAborted()
      }
      return false
    },
  }
}
