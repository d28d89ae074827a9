// An application of Fastify with the plugin, and errors that routes of Fastify, Express and Hono let through.
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { createPasswords, type Passwords } from '@spillway/client'
import spillway from '@spillway/client/fastify'
import { fastify } from 'fastify'
import { Hono } from 'hono'

const policy = { algorithm: 'bcrypt', cost: 5 } as const
// Fastify closes the connection of a request in hand only when it has been idle for so long.
const app = fastify({ keepAliveTimeout: 500 })
await app.register(spillway, { policy, waitMs: 60_000, maxOutstanding: 2 })
const passwords: Passwords = app.passwords
const slow = await passwords.hash('correct horse', { algorithm: 'bcrypt', cost: 12 })
const verify = () => passwords.verify('correct horse', slow)
app.get('/', verify)
const url = await app.listen({ port: 0, host: '127.0.0.1' })

/** Express has no types of its own. */
const express = createRequire(import.meta.url)('express')()
express.get('/', async (_: unknown, response: { json(body: unknown): void }) => response.json(await verify()))
// Its own handler would log the errors.
express.set('env', 'test')
const server = express.listen(0, '127.0.0.1')
await once(server, 'listening')

const hono = new Hono()
hono.get('/', async (context) => context.json(await verify()))

/** Of several requests at once, the status and Retry-After of what was answered and what was refused. */
async function statuses(get: () => Response | Promise<Response>): Promise<string[]> {
  const responses = await Promise.all(Array.from({ length: 8 }, get))
  const known = responses.map(({ status, headers }) => `${status} ${Number(headers.get('retry-after')) > 0}`)
  return [...new Set(known)].sort()
}
const results = [
  await statuses(() => fetch(url)),
  await statuses(() => fetch(`http://127.0.0.1:${server.address().port}`)),
  await statuses(() => hono.request('/')),
]
server.close()

// A login is in hand when the application is closed.
const last = fetch(url)
while (passwords.capacity().active === 0) await new Promise(setImmediate)
const closing = app.close()
const answered = (await last).status
await closing
const code: unknown = await createPasswords()
  .close()
  .then(() => passwords.hash('x'))
  .catch((error) => error.code)
// @ts-expect-error there is no such option
const unused = () => fastify().register(spillway, { polciy: {} })
console.log(JSON.stringify([...results, answered, code, typeof unused]))
