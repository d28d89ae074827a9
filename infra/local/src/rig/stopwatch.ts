// Measures durations in tests that bound them from above, on machines that other programs keep busy.

const TICK_MS = 25

/**
 * Starts a stopwatch and returns how to read it, in milliseconds. It counts turns of this process's timers instead of the time of day:
 * while the machine gives this process no processor it stands still, as what the test waits for is likely to. Not for lower bounds.
 */
export function startStopwatch(): () => number {
  let ticks = 0
  const timer = setInterval(() => {
    ticks += 1
  }, TICK_MS)
  timer.unref()
  return () => ticks * TICK_MS
}
