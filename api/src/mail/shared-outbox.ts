/** The outbox of several Redis servers: a mail goes into the first that takes it. One that is tried again elsewhere may be sent twice, and none is lost. */
import type { Outbox } from './outbox.js'

export interface OutboxOfRedis {
  outbox: Outbox
  isUsable(): boolean
}

/** Combines several outboxes; a single one is returned unchanged. */
export function shareOutbox(all: readonly OutboxOfRedis[]): Outbox {
  const [only] = all
  if (only !== undefined && all.length === 1) return only.outbox
  return {
    async add(request, lifeMs) {
      const usable = all.filter(({ isUsable }) => isUsable())
      let failure: unknown = new Error('there is no Redis for the mail')
      for (const { outbox } of usable.length > 0 ? usable : all) {
        try {
          return await outbox.add(request, lifeMs)
        } catch (error) {
          failure = error
        }
      }
      throw failure
    },
    close: async () => void (await Promise.all(all.map(({ outbox }) => outbox.close()))),
  }
}
