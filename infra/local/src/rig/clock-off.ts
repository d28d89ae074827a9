// Starts a process with a shifted wall clock.
import { fileURLToPath } from 'node:url'

const preload = fileURLToPath(new URL('shifted-clock.mjs', import.meta.url))

/** The environment of a process whose wall clock is this far ahead, in milliseconds; negative for behind. */
export function clockOff(shiftMs: number): { CLOCK_SHIFT_MS: string; NODE_OPTIONS: string } {
  // Quoted, because Node splits NODE_OPTIONS at blanks.
  return { CLOCK_SHIFT_MS: String(shiftMs), NODE_OPTIONS: `--import "file://${encodeURI(preload)}"` }
}
