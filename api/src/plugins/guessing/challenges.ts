/** Challenges, which replace a delay: of two kinds, proof of work (proof-of-work.ts) and another service (outside-challenge.ts). */
import type { Challenge } from '../../schemas/responses.js'

/** How long a client may take, in seconds: a slow phone needs a minute for the hardest proof of work. */
export const CHALLENGE_TTL_S = 300

/** A challenge that was solved. It must be marked as used before it allows anything. */
export interface Solved {
  id: string
  /** Until it expires, in milliseconds. */
  leftMs: number
}

/** The client that sent an answer, and its request. */
export interface Answerer {
  address: string
  /** Aborts when the client disconnects. */
  gone: AbortSignal
  /** Awaits another service: meanwhile the request does not count as one that the gateway works on. */
  whilePaused<T>(wait: () => Promise<T>): Promise<T>
}

export interface Challenges {
  /** A challenge for an account; `excess` are its failures beyond the bound. */
  issue(account: string, excess: number): Challenge
  /**
   * What an answer solves; undefined unless it solves a challenge of this account that has not expired. Throws `unavailable` when another
   * service does not say, and `busy` when it is asked too often at once.
   */
  check(account: string, answer: string, answerer: Answerer): Solved | undefined | Promise<Solved | undefined>
}
