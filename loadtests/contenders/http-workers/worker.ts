// A stateless worker: POST /verify with the hash, the password and the shared secret, all in the body and in clear.
import Fastify from 'fastify'
import { verify } from '../hashing.ts'

type Verify = { Body: { hash: string; password: string; secret: string } }

const app = Fastify({ logger: { level: 'warn' } })
app.post<Verify>('/verify', async ({ body }, reply) => {
  if (body.secret !== process.env.SHARED_SECRET) return reply.code(403).send({ error: 'wrong secret' })
  return { match: await verify(body.password, body.hash) }
})
console.log(JSON.stringify({ msg: 'listening', url: await app.listen({ host: '127.0.0.1', port: 0 }) }))
