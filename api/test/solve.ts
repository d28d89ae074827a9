// Solves a proof of work as a client does, by what the description of the API says.
import { createHash } from 'node:crypto'
import type { Challenge } from './client.ts'

export function solve({ token, bits }: Pick<Challenge, 'token' | 'bits'>): string {
  for (let n = 0; ; n += 1) if (isSolved(`${token}.${n}`, bits)) return `${token}.${n}`
}

/** A text for the challenge that does not solve it. */
export function solveNot({ token, bits }: Pick<Challenge, 'token' | 'bits'>): string {
  for (let n = 0; ; n += 1) if (!isSolved(`${token}.${n}`, bits)) return `${token}.${n}`
}

function isSolved(answer: string, bits: number): boolean {
  const digest = createHash('sha256').update(answer).digest('hex')
  const binary = [...digest].map((digit) => Number.parseInt(digit, 16).toString(2).padStart(4, '0')).join('')
  return binary.startsWith('0'.repeat(bits))
}
