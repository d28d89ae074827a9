/** The end of a process, step by step. A door of its own: gateways end in the same way. */

import { within } from '@spillway/client/within'
import type { Logger } from './log.js'

export interface Closing {
  /** Takes one step. When it fails or takes longer than this, that is logged, and the next one can be taken all the same. */
  step(what: string, timeMs: number, work: () => unknown): Promise<void>
  /** What did not go well so far: one error for all of it, with the first as its cause. */
  failure(): Error | undefined
}

export function beginClosing(name: 'gateway' | 'worker', log: Pick<Logger, 'warn'>): Closing {
  const failed: { what: string; error: unknown }[] = []
  return {
    async step(what, timeMs, work) {
      try {
        const done = Promise.resolve(work()).then(() => true)
        if (!(await within(timeMs, done))) throw new Error(`not over within ${timeMs} ms`)
      } catch (error) {
        failed.push({ what, error })
        log.warn({ err: error, step: what }, `${name} stops all the same`)
      }
    },
    failure() {
      const [first] = failed
      return first && new Error(`could not ${failed.map(({ what }) => what).join(', ')}`, { cause: first.error })
    },
  }
}
