// Verify by HTTP workers, by Verifico's rules: a fixed list taken in turn; each gets five seconds; when none has answered
// the server hashes itself, without a bound. New passwords are always hashed locally: its workers only verify.
import { hash, verify } from '../hashing.ts'
import { announce, serve } from '../rival-server.ts'

const WORKER_TIMEOUT_MS = 5_000

const workers = (process.env.WORKERS ?? '').split(',')
let turn = 0

async function verifyRemotely(password: string, storedHash: string): Promise<boolean> {
  const first = turn++
  for (const offset of workers.keys()) {
    try {
      const response = await fetch(`${workers[(first + offset) % workers.length]}/verify`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ hash: storedHash, password, secret: process.env.SHARED_SECRET }),
        signal: AbortSignal.timeout(WORKER_TIMEOUT_MS),
      })
      if (!response.ok) continue
      const answer: unknown = await response.json()
      return typeof answer === 'object' && answer !== null && 'match' in answer && answer.match === true
    } catch {
      // Down, hung or overloaded: the next one.
    }
  }
  return verify(password, storedHash)
}

announce(await serve({ hash, verify: verifyRemotely }, process.env))
