// Clocks of tests: a process with a shifted wall clock, Redis's clock, and a stopwatch.
import { fileURLToPath } from 'node:url'

const preload = fileURLToPath(new URL('shifted-clock.mjs', import.meta.url))

/** The environment of a process whose wall clock is ahead by this, in ms; negative for behind. */
export function clockOff(shiftMs: number): { CLOCK_SHIFT_MS: string; NODE_OPTIONS: string } {
  // Quoted, because Node splits NODE_OPTIONS at blanks.
  return { CLOCK_SHIFT_MS: String(shiftMs), NODE_OPTIONS: `--import "file://${encodeURI(preload)}"` }
}

interface TimeSource {
  time(): Promise<(number | string)[]>
}

/** Deadlines are by Redis's clock: epoch milliseconds. */
export async function redisTime(redis: TimeSource): Promise<number> {
  const [seconds, microseconds] = await redis.time()
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000)
}

const TICK_MS = 25

/**
 * Starts a stopwatch for upper bounds, and returns how to read it, in milliseconds. It counts turns
 * of this process's timers: while the process gets no processor, it stands still.
 */
export function startStopwatch(): () => number {
  let ticks = 0
  const timer = setInterval(() => {
    ticks += 1
  }, TICK_MS)
  timer.unref()
  return () => ticks * TICK_MS
}
