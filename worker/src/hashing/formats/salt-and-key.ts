/**
 * scrypt as `salt:key` in hexadecimal, the salt used as the text that it is: Node's examples, with the defaults of crypto.scrypt, and
 * Better Auth and Lucia, with blocks twice as large and the password in NFKC. The texts do not tell which: both are tried, so that a wrong
 * password takes both, for every account alike: three eighths of what OWASP's Password Storage Cheat Sheet asks of scrypt. The second
 * takes 32 MiB, and is not tried where a hash may not have as much.
 */
import { unpadded } from '@spillway/client/protocol/base64'
import type { Verifier } from '../algorithm.js'

const PATTERN = /^([0-9a-f]{32}):([0-9a-f]{128})$/

const origins = [
  { setting: '$scrypt$ln=14,r=8,p=1', textOf: (password: string) => password },
  { setting: '$scrypt$ln=14,r=16,p=1', textOf: (password: string) => password.normalize('NFKC') },
]

/** @param scrypt the verifier of PHC strings */
export function saltAndKey(scrypt: Verifier): Verifier {
  function readings(storedHash: string) {
    const [, salt, key = ''] = PATTERN.exec(storedHash) ?? []
    if (salt === undefined) return []
    const parts = [unpadded(Buffer.from(salt)), unpadded(Buffer.from(key, 'hex'))]
    return origins
      .map(({ setting, textOf }) => ({ phc: [setting, ...parts].join('$'), textOf }))
      .filter(({ phc }) => scrypt.recognizes(phc))
  }

  return {
    ...scrypt,
    recognizes: (storedHash) => readings(storedHash).length > 0,
    async verify(password, storedHash, signal) {
      for (const { phc, textOf } of readings(storedHash)) {
        if (await scrypt.verify(textOf(password), phc, signal)) return true
        signal?.throwIfAborted()
      }
      return false
    },
  }
}
