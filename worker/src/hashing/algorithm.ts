/** What a hashing algorithm is to a worker: something that verifies, and for new hashes one that hashes at a policy's cost. */

/** What new hashes are made with today: argon2id at this cost. */
export interface Policy {
  memoryKib: number
  time: number
  parallelism: number
}

/** What can verify one algorithm's hashes. All of its work is off the event loop. */
export interface Verifier {
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
}
