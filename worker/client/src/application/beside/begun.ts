/** Calls that have tickets: they are kept until their answers are taken, or their time is over. */
import { randomUUID } from 'node:crypto'
import type { JobRef } from '../../protocol/reply.js'
import type { Call } from './calls.js'

export interface Begun {
  /** `over` is called at the end of its life, unless it was taken. */
  add(call: Call, lifeMs: number, over: () => void): JobRef
  get(job: JobRef): Call | undefined
  /** Forgets a call; whether it was here. */
  take(job: JobRef): boolean
  close(): void
}

export function createBegun(): Begun {
  const begun = new Map<string, { call: Call; timer: NodeJS.Timeout }>()

  function take({ id }: Pick<JobRef, 'id'>): boolean {
    clearTimeout(begun.get(id)?.timer)
    return begun.delete(id)
  }

  return {
    add(call, lifeMs, over) {
      const id = randomUUID()
      const timer = setTimeout(() => {
        if (take({ id })) over()
      }, lifeMs)
      timer.unref()
      begun.set(id, { call, timer })
      return { id, name: 'verify', deadline: Date.now() + lifeMs }
    },
    get: ({ id }) => begun.get(id)?.call,
    take,
    close() {
      for (const id of begun.keys()) take({ id })
    },
  }
}
