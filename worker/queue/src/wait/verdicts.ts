/** Opening verdicts. A verdict counts only if it opens for its job; anything else is treated as missing. */
import type { Logger } from '../logger.js'
import { isVerdict, type Verdict } from '../wire/job.js'
import { type JobRef, verdictSeal } from '../wire/reply.js'
import { type Keyring, SealError } from '../wire/seal.js'

export interface Verdicts {
  /** Opens a verdict that was announced or stored. */
  open(job: JobRef, sealed: string): Verdict | undefined
  /** The stored value is not a worker's verdict: counts and logs it. */
  broken(job: JobRef): undefined
}

export function createVerdicts(options: {
  keyring: Keyring
  log: Logger
  /** Called for each verdict that did not open. */
  broken(): void
}): Verdicts {
  const { keyring, log } = options

  function broken(job: JobRef): undefined {
    options.broken()
    log.error({ jobId: job.id }, 'a verdict did not open: forged, swapped or damaged')
  }

  function open(job: JobRef, sealed: string): Verdict | undefined {
    try {
      const verdict = keyring.open(verdictSeal(job), sealed)
      return isVerdict(verdict) ? verdict : broken(job)
    } catch (error) {
      if (error instanceof SealError) return broken(job)
      throw error
    }
  }

  return { open, broken }
}
