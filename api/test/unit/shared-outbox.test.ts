// One outbox of several Redis: where a mail goes while some of them are away.
import assert from 'node:assert/strict'
import { newSealKey } from '@spillway/infra/start/secrets'
import { parseKeyring } from '@spillway/queue/queue-client'
import { test } from 'vitest'
import { Outbox } from '../../src/mail/outbox.ts'

type State = 'usable' | 'away' | 'back, and not known to be'

/** The outbox of Redis in these states, and the numbers of those that took a mail. */
function outboxOf(...states: State[]) {
  const took: number[] = []
  const all = states.map((state, n) => ({
    isUsable: () => state === 'usable',
    now: () => 0,
    queue: {
      async add() {
        if (state === 'away') throw new Error(`Redis ${n} is away`)
        took.push(n)
      },
      close: async () => undefined,
      getRanges: async () => [],
      getJob: async () => undefined,
    },
  }))
  const add = () => new Outbox(all, parseKeyring(newSealKey('test'))).add({}, 1_000)
  return { add, took }
}

test.each<[string, State[]]>([
  ['the first Redis that is usable, once', ['away', 'usable', 'usable']],
  ['each in turn, where none is known to be usable', ['away', 'back, and not known to be']],
])('a mail goes into %s', async (_, states) => {
  const { add, took } = outboxOf(...states)
  await add()
  assert.deepEqual(took, [1])
})

test('a mail that no Redis takes is refused', async () => {
  await assert.rejects(outboxOf('away', 'away').add(), /is away/)
})
