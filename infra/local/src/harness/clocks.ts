// Clocks of tests: a process with a shifted wall clock, and Redis's clock.
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
