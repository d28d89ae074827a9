// Starting several things at once, of which one alone is of no use.

interface Closable {
  close(): Promise<void>
}

/** Waits for all of them. Where one fails, the others are closed, and the first failure is thrown. */
export async function allOrNone<T extends readonly Promise<Closable>[] | []>(
  starts: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  const ends: readonly PromiseSettledResult<Closable>[] = await Promise.allSettled(starts)
  if (ends.some(({ status }) => status === 'rejected')) {
    await Promise.all(ends.map(async (end) => end.status === 'fulfilled' && (await end.value.close())))
  }
  return Promise.all(starts)
}
