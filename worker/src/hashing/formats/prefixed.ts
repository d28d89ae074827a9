/** Django's argon2 and bcrypt hashes: the name of the algorithm before the usual text. */
import type { Verifier } from '../algorithm.js'

/** Verifies the same algorithm with Django's prefix, such as `argon2$argon2id$v=19$…` and `bcrypt$$2b$12$…`. */
export function prefixed(verifier: Verifier): Verifier {
  // argon2's own text begins with the dollar that ends the prefix; bcrypt's begins after it.
  const prefix = verifier.family === 'bcrypt' ? 'bcrypt$' : verifier.family
  const withoutPrefix = (storedHash: string) => storedHash.slice(prefix.length)
  return {
    ...verifier,
    recognizes: (storedHash) => storedHash.startsWith(prefix) && verifier.recognizes(withoutPrefix(storedHash)),
    algorithm: (storedHash) => verifier.algorithm(withoutPrefix(storedHash)),
    verify: (password, storedHash, signal) => verifier.verify(password, withoutPrefix(storedHash), signal),
  }
}
