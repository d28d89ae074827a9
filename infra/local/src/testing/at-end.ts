// Cleans up after a test, in reverse order.
import type { TestContext } from 'node:test'

type Close = () => unknown

const closesOf = new WeakMap<TestContext, Close[]>()

/**
 * Closes resources after the test in reverse order, so that a folder is deleted after the processes that write into it have ended. Hooks
 * of `t.after` run in the opposite order.
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
