// HTTP workers by Verifico's rules: a fixed list (WORKERS) in turn, five seconds each; then the
// server hashes itself, without a bound. New passwords are hashed locally. Without the list, this
// program is a worker: POST /verify with hash, password and secret in clear.
import Fastify from 'fastify'
import { hash, verify } from '../hashing.ts'
import { announce, serve } from '../rival-server.ts'

const WORKER_TIMEOUT_MS = 5_000
const { WORKERS, SHARED_SECRET } = process.env

const workers = WORKERS?.split(',') ?? []
let turn = 0

if (WORKERS !== undefined) announce(await serve({ hash, verify: verifyRemotely }))
else {
  type Verify = { Body: { hash: string; password: string; secret: string } }
  const app = Fastify({ logger: { level: 'warn' } })
  app.post<Verify>('/verify', async ({ body }, reply) => {
    if (body.secret !== SHARED_SECRET) return reply.code(403).send({ error: 'wrong secret' })
    return { match: await verify(body.password, body.hash) }
  })
  announce(await app.listen({ host: '127.0.0.1', port: 0 }))
}

async function verifyRemotely(password: string, storedHash: string): Promise<boolean> {
  const first = turn++
  for (const offset of workers.keys()) {
    try {
      const response = await fetch(`${workers[(first + offset) % workers.length]}/verify`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ hash: storedHash, password, secret: SHARED_SECRET }),
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
