/** Tells an application's metrics of each call at its end. */
import type { Verdict } from '../protocol/job.js'
import { PasswordsError } from './passwords-error.js'
import type { Logger, ObservedCall } from './types.js'

type Answered = Exclude<Verdict, { kind: 'refused' }>

/** Runs a call, and passes on how it ended. An error in the arguments is not a call, nor is a result without a verdict. */
export type Observe = <T extends Answered | undefined>(
  call: ObservedCall['call'],
  signal: AbortSignal | undefined,
  run: () => Promise<T>,
) => Promise<T>

export function observe(options: {
  onCall: ((call: ObservedCall) => void) | undefined
  by: () => ObservedCall['by']
  log: Logger
}): Observe {
  const { onCall, by, log } = options
  if (onCall === undefined) return (_call, _signal, run) => run()

  return async (call, signal, run) => {
    const startMs = performance.now()
    const ended = (outcome: ObservedCall['outcome']): void => {
      try {
        onCall({ call, by: by(), outcome, ms: performance.now() - startMs })
      } catch (error) {
        log.error({ err: error }, 'onCall failed')
      }
    }
    try {
      const verdict = await run()
      if (verdict !== undefined) ended(verdict.kind)
      return verdict
    } catch (error) {
      if (error instanceof PasswordsError) ended(error.code)
      else if (signal?.aborted) ended('aborted')
      throw error
    }
  }
}
