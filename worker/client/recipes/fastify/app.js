// Fastify: users register and log in. They are kept in memory, and in users.json for the next
// start.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import bcrypt from 'bcrypt'
import Fastify from 'fastify'

const COST = 10
/**
 * Compared with where there is no such user, so that the answer takes as long: the hash of a
 * password that nobody knows.
 */
const NOBODY = '$2b$10$7Lc.1wffkuXCcWWjTdA88eWkHb2P9eWpd/TWn2jtzmfrQQ6WU6L62'

/** Hashes of passwords by e-mail address. */
const users = new Map(existsSync('users.json') ? JSON.parse(readFileSync('users.json', 'utf8')) : [])

const credentials = {
  type: 'object',
  required: ['email', 'password'],
  properties: { email: { type: 'string' }, password: { type: 'string' } },
}

const fastify = Fastify()

fastify.post('/users', { schema: { body: credentials } }, async (request, reply) => {
  const { email, password } = request.body
  const hash = await bcrypt.hash(password, COST)
  if (users.has(email)) return reply.code(409).send()
  users.set(email, hash)
  writeFileSync('users.json', JSON.stringify([...users]))
  return reply.code(201).send()
})

fastify.post('/login', { schema: { body: credentials } }, async (request, reply) => {
  const { email, password } = request.body
  const isRight = await bcrypt.compare(password, users.get(email) ?? NOBODY)
  return reply.code(isRight ? 200 : 401).send()
})

await fastify.listen({ port: Number(process.env.PORT ?? 3000) })
