// A wall clock that is off, for a process of ours that is started with it.
import { fileURLToPath } from 'node:url'

const preload = fileURLToPath(new URL('shifted-clock.mjs', import.meta.url))

/** The environment of a process whose wall clock is so far ahead, in milliseconds; behind, where negative. */
export function clockOff(shiftMs: number): { CLOCK_SHIFT_MS: string; NODE_OPTIONS: string } {
  // Quoted: Node splits its options at blanks.
  return { CLOCK_SHIFT_MS: String(shiftMs), NODE_OPTIONS: `--import "file://${encodeURI(preload)}"` }
}
