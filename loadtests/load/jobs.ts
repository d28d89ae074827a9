// Closed-loop load on the queue itself, by the client that gateways use: callers that have a verify done, which costs nothing, again and again.
import type { PasswordClient } from '@spillway/client/queue-client'
import { TOKEN_HASH } from '../contenders/hashing.ts'

const REQUEST = { password: 'correct horse', storedHash: TOKEN_HASH }
const ANSWER_WITHIN_MS = 10_000

export function startJobs(client: Pick<PasswordClient, 'submit'>, callers: number) {
  const counts = { done: 0, failed: 0 }
  let isStopped = false

  async function verify(): Promise<boolean> {
    const pending = await client.submit('verify', REQUEST)
    return (await pending.answer({ waitMs: ANSWER_WITHIN_MS }))?.kind === 'match'
  }

  async function call(): Promise<void> {
    while (!isStopped) counts[(await verify().catch(() => false)) ? 'done' : 'failed'] += 1
  }

  const ended = Promise.all(Array.from({ length: callers }, call))
  return {
    /** So far. */
    counts: (): Readonly<typeof counts> => ({ ...counts }),
    async stop(): Promise<void> {
      isStopped = true
      await ended
    },
  }
}
