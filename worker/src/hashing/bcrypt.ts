/** bcrypt, verified so that accounts from older systems can log in; they leave with an argon2id hash. */
import bcrypt from 'bcrypt'
import type { Algorithm } from './index.js'

/** bcrypt reads this many bytes and ignores the rest, and implementations stop at a NUL: both would let a prefix match. */
const PASSWORD_LIMIT_BYTES = 72
const COST_LIMIT = 17

const MODULAR_CRYPT = /^\$2[aby]\$(\d{2})\$[./A-Za-z0-9]{53}$/

export const bcryptVerifier: Omit<Algorithm, 'hash'> = {
  recognizes(storedHash) {
    const cost = Number(MODULAR_CRYPT.exec(storedHash)?.[1])
    return cost >= 4 && cost <= COST_LIMIT
  },
  async verify(password, storedHash) {
    // `2y` is PHP's name for what the library calls `2b`.
    const hash = storedHash.replace(/^\$2y\$/, '$2b$')
    const readWhole = Buffer.byteLength(password) <= PASSWORD_LIMIT_BYTES && !password.includes('\0')
    const matches = await bcrypt.compare(readWhole ? password : '', hash)
    return readWhole && matches
  },
  isBelow: () => true,
}
