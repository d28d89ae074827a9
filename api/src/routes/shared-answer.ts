/** One answer for all who ask within a moment: nothing limits how often probes ask. */

/** Returns a function that gives the answer in progress, or one that is younger than `forMs`, in milliseconds. `ask` never rejects. */
export function shareAnswer<T>(
  ask: () => Promise<T>,
  forMs: number,
  now: () => number = () => performance.now(),
): () => Promise<T> {
  let shared: { answer: Promise<T>; untilMs: number } | undefined
  return () => {
    if (shared !== undefined && now() < shared.untilMs) return shared.answer
    const asking = { answer: ask(), untilMs: Number.POSITIVE_INFINITY }
    shared = asking
    void asking.answer.then(() => {
      asking.untilMs = now() + forMs
    })
    return asking.answer
  }
}
