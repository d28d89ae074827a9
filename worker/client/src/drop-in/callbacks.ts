/** Outcomes for callbacks, as the packages give them. */

/**
 * Without a callback the promise itself. With one, it is called in a turn of its own, so that what it throws is not a rejection: with
 * the error alone, or with undefined and the value.
 */
export function settle<T>(work: Promise<T>, callback: unknown): Promise<T> | undefined {
  if (typeof callback !== 'function') return work
  work.then(
    (value) => process.nextTick(() => Reflect.apply(callback, undefined, [undefined, value])),
    (error: unknown) => process.nextTick(() => Reflect.apply(callback, undefined, [error])),
  )
  return undefined
}
