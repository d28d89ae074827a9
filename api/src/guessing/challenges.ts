/** The challenge in force: proof of work, or the challenge of another service, if one is configured. */
import type { Keyring } from '@spillway/queue/queue-client'
import type { Challenge } from '../schemas/responses.js'
import { type Answerer, createOutsideChallenge } from './outside-challenge.js'
import { createProofOfWork, type Solved } from './proof-of-work.js'

export interface Challenges {
  /** A challenge for an account; `excess` are its failures beyond the bound. */
  issue(account: string, excess: number): Challenge
  /**
   * What an answer solves; undefined when it solves nothing. Throws `unavailable` when the other service does not say, and `busy` when it
   * is asked too often at once.
   */
  check(account: string, answer: string, answerer: Answerer): Promise<Solved | undefined>
}

export interface ChallengeOptions {
  bits: number
  /** Redis's clock. */
  nowMs(): number
  /** Empty for proof of work. */
  verifyUrl: string
  secret: string
  siteKey: string
}

export function createChallenges(keyring: Keyring, options: ChallengeOptions): Challenges {
  if (options.verifyUrl !== '') {
    const { siteKey, check } = createOutsideChallenge(options)
    return {
      issue: () => ({ kind: 'outside', siteKey }),
      check: (_account, answer, answerer) => check(answer, answerer),
    }
  }
  const { issue, check } = createProofOfWork(keyring, options)
  return {
    issue: (account, excess) => ({ kind: 'proof_of_work', ...issue(account, excess) }),
    check: async (account, answer) => check(account, answer),
  }
}
