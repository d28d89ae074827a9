// The floor under the cost of a login: a bare Fastify that answers a login's body with an answer of
// its size. FLOOR says what it does before: nothing, a bare BullMQ job, or the two statements.
import { randomBytes, randomUUID } from 'node:crypto'
import { connectDatabase, Prisma, rawQuery } from '@spillway/prisma'
import { Queue, QueueEvents, Worker } from 'bullmq'
import Fastify from 'fastify'
import { announce, BACKLOG, type Credentials, credentials, TOKEN } from '../rival-server.ts'

const { FLOOR = '', DATABASE_URL = '', REDIS_URL = '' } = process.env
/** About as long as the sealed request and the sealed result of a verify. */
const REQUEST = { sealed: randomBytes(400).toString('base64') }
const RESULT = { sealed: randomBytes(60).toString('base64') }
const ANSWER = {
  accessToken: randomBytes(300).toString('base64url'),
  refreshToken: randomBytes(60).toString('base64url'),
  ...TOKEN,
}

const works: Partial<Record<string, () => Promise<(email: string) => Promise<unknown>>>> = {
  answer: async () => async () => undefined,
  async job() {
    const options = { connection: { url: REDIS_URL }, prefix: `{floor-${randomUUID()}}` }
    const queue = new Queue('floor', options)
    const events = new QueueEvents('floor', options)
    const worker = new Worker('floor', async () => RESULT, { ...options, concurrency: 4 })
    await Promise.all([queue.waitUntilReady(), events.waitUntilReady(), worker.waitUntilReady()])
    return async () => {
      const job = await queue.add('verify', REQUEST, { removeOnComplete: true })
      return job.waitUntilFinished(events)
    }
  },
  async statements() {
    const timeouts = { connectionTimeoutMs: 60_000, statementTimeoutMs: 60_000 }
    const database = connectDatabase({ url: DATABASE_URL, poolSize: 10, ...timeouts })
    return async (email) => {
      const [user] = await rawQuery<{ id: string }>(
        database,
        Prisma.sql`SELECT id, password_hash, credential_version FROM users WHERE email = ${email}`,
      )
      return rawQuery(
        database,
        Prisma.sql`
          INSERT INTO sessions (id, user_id, expires_at, idle_ends_at, family_hash, token_hash)
          VALUES (${randomUUID()}::uuid, ${user?.id}::uuid, now() + '30 days', now() + '30 days', ${randomBytes(32)},
            ${randomBytes(32)}) RETURNING id, created_at`,
      )
    }
  },
}

const work = await works[FLOOR]?.()
if (work === undefined) throw new Error(`FLOOR is one of ${Object.keys(works).join(', ')}`)
const app = Fastify()
app.post<Credentials>('/v1/login', { schema: { body: credentials } }, async ({ body }) => {
  await work(body.email)
  return ANSWER
})
app.get('/neighbour', async () => ANSWER)
announce(await app.listen({ host: '127.0.0.1', port: 0, backlog: BACKLOG }))
