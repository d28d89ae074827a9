// Stored hashes that other implementations made of one password: Django 5, passlib 1.7, Werkzeug 3,
// libxcrypt, Better Auth 1.7 and firebase-scrypt 2.2; some are put together from Node's and
// Python's primitives, by the documented layouts.

import { readFileSync } from 'node:fs'

export const vectorPassword = 'correct horse battery st\u00e4ple'

/** The project of Firebase's own example. */
export const firebaseExample = {
  firebaseSignerKey: 'jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==',
  firebaseSaltSeparator: 'Bw==',
  password: 'user1password',
  storedHash:
    '$firebase-scrypt$ln=14,r=8$42xEC+ixf3L2lw==$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==',
}

export interface Vector {
  origin: string
  /** In metrics. */
  label: string
  storedHash: string
}

export const vectors: Vector[] = readFileSync(new URL('./data/other-systems.ndjson', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((row) => JSON.parse(row))

const OF_ASCII = '$2x$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'
/** What matches bcrypt 2x, which extended bytes beyond ASCII with their sign, and what does not */
export const extendedBytes: [password: string, storedHash: string, matches: boolean][] = [
  ['\u00ff', '$2x$04$CCCCCCCCCCCCCCCCCCCCC.0BMvexj9TifIzCqMH/2rpYmIjwMTvt2', true],
  ['\u00ff', '$2y$04$CCCCCCCCCCCCCCCCCCCCC.0BMvexj9TifIzCqMH/2rpYmIjwMTvt2', false],
  ['U*U', OF_ASCII, true],
  ['U*U\0', OF_ASCII, false],
  ['', '$2x$04$CCCCCCCCCCCCCCCCCCCCC.Cg0ly9t/KVBCBYYDfOmZKwry9JuXClC', true],
  ['\0', '$2x$04$CCCCCCCCCCCCCCCCCCCCC.Cg0ly9t/KVBCBYYDfOmZKwry9JuXClC', false],
]
