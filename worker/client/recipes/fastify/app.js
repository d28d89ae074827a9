// Fastify: users register and log in. They are kept in memory, and in users.json for the next
// start.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createPasswords } from '@spillway/client'
import Fastify from 'fastify'

/** Hashes of passwords by e-mail address. */
const users = new Map(existsSync('users.json') ? JSON.parse(readFileSync('users.json', 'utf8')) : [])

const credentials = {
  type: 'object',
  required: ['email', 'password'],
  properties: { email: { type: 'string' }, password: { type: 'string' } },
}

const fastify = Fastify()
const passwords = createPasswords({ log: fastify.log })
// Closed after the server, so that running requests are still answered.
fastify.addHook('onClose', () => passwords.close())

fastify.post('/users', { schema: { body: credentials } }, async (request, reply) => {
  const { email, password } = request.body
  const hash = await passwords.hash(password)
  if (users.has(email)) return reply.code(409).send()
  users.set(email, hash)
  writeFileSync('users.json', JSON.stringify([...users]))
  return reply.code(201).send()
})

fastify.post('/login', { schema: { body: credentials } }, async (request, reply) => {
  const { email, password } = request.body
  // Rejects when the login could not be answered in time, and ends it when the client leaves.
  const call = await passwords.admit(reply.raw)
  // null for an unknown user takes as long, and is never true.
  const isRight = await passwords.verify(password, users.get(email) ?? null, call)
  return reply.code(isRight ? 200 : 401).send()
})

await fastify.listen({ port: Number(process.env.PORT ?? 3000) })
