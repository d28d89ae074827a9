/** A password hashing algorithm as a worker uses it. */

/** Verifies the hashes of one family of algorithms. All of its work is off the event loop. */
export interface Verifier {
  /** As operators know it: argon2, bcrypt. */
  readonly family: string
  /** The implementation in use, by its package. */
  readonly engine: string
  /** Whether the stored hash is of this algorithm, well-formed, and within the cost that a worker is willing to pay. */
  recognizes(storedHash: string): boolean
  /** The signal takes the call back where it has not begun: the promise is rejected with its reason then. */
  verify(password: string, storedHash: string, signal?: AbortSignal): Promise<boolean>
  /** Whether a stored hash is weaker than today's policy. Never true for a stronger one: a cost once paid is kept. */
  isBelow(storedHash: string): boolean
}

/** The algorithm that new hashes are made with. */
export interface Algorithm extends Verifier {
  hash(password: string, signal?: AbortSignal): Promise<string>
  /** A well-formed hash with a random digest: verifying against it takes as long as any, and no password is known to match. */
  decoyHash(): string
}
