// Starts several resources at once, all or none.

interface Closable {
  close(): Promise<void>
}

/** Waits for all. If one fails, closes the others and rejects with the first failure. */
export async function allOrNone<T extends readonly Promise<Closable>[] | []>(
  starts: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  const ends: readonly PromiseSettledResult<Closable>[] = await Promise.allSettled(starts)
  if (ends.some(({ status }) => status === 'rejected')) {
    await Promise.all(ends.map(async (end) => end.status === 'fulfilled' && (await end.value.close())))
  }
  return Promise.all(starts)
}
