/** argon2 as PHC strings have it. */
import { parseArgon2 } from '@spillway/queue/wire/stored-hash'
import type { Format, Reading } from './format.js'

export const argon2: Format = {
  name: 'argon2',
  makers: 'Spillway, PHP, argon2 of npm, argon2-cffi, passlib, Spring Security',
  read: argon2Reading,
}

/** RFC 9106, 3.1: eight blocks for each lane. */
export function argon2Reading(text: string): Reading | undefined {
  const stored = parseArgon2(text)
  if (stored === undefined || stored.memoryKib < 8 * stored.parallelism) return undefined
  return { recipes: [{ method: 'argon2', stored }] }
}
