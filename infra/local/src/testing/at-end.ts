// What a test ends when it is over.
import type { TestContext } from 'node:test'

type Close = () => Promise<void>

const closesOf = new WeakMap<TestContext, Close[]>()

/**
 * Closes after the test, the last that was opened first: a folder goes when the processes that write into it are gone.
 * Hooks of `t.after` run in the opposite order.
 */
export function atEnd(t: TestContext, close: Close): void {
  const known = closesOf.get(t)
  if (known) {
    known.push(close)
    return
  }
  const closes = [close]
  closesOf.set(t, closes)
  t.after(async () => {
    for (const each of closes.reverse()) await each()
  })
}
