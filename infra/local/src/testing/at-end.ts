// Cleans up after a test, in reverse order.

type Close = () => unknown

/** A test, or a file of tests: `{ after }`, of node:test. */
export interface Ending {
  after(close: () => Promise<void>): void
}

const closesOf = new WeakMap<Ending, Close[]>()

/**
 * Closes resources after the test in reverse order, so that a folder is deleted after the processes that write into it have ended. Hooks
 * of `t.after` run in the opposite order.
 */
export function atEnd(t: Ending, close: Close): void {
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
