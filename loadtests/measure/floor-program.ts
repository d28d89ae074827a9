// A program of its own: what the parts of a login cost that no design leaves out. As `worker` it does jobs that do nothing and announces
// them; as `gateway` it reads an account, adds such a job, waits for its announcement, writes a session and signs a token. Nothing is
// sealed, limited, held, recorded or recovered.
import { createHash, generateKeyPairSync, randomBytes, randomUUID, sign } from 'node:crypto'
import { createRefusalPace, REFUSED_AT_ONCE_MS } from '@spillway/client/passwords/refusal-pace'
import { Queue, Worker } from 'bullmq'
import { fastify } from 'fastify'
import { Redis } from 'ioredis'
import { Pool } from 'pg'

const NAME = 'floor'
const POOL_SIZE = 10
const SLOTS = 16
const KEPT = 500
const TOKEN_TTL_S = 900
const SESSION_TTL_S = 2_592_000

const [, , role, databaseUrl = '', redisUrl = '', prefix = ''] = process.argv
const connection = new Redis(redisUrl, { maxRetriesPerRequest: null })
const channel = `${prefix}:replies`

const LoginBody = {
  type: 'object',
  properties: {
    email: { type: 'string', maxLength: 254 },
    password: { type: 'string', minLength: 1, maxLength: 1_024 },
  },
  required: ['email', 'password'],
  additionalProperties: false,
} as const
const TicketBody = {
  type: 'object',
  properties: { ticket: { type: 'string', maxLength: 1_024 } },
  required: ['ticket'],
  additionalProperties: false,
} as const
const TokenBody = {
  type: 'object',
  properties: { accessToken: { type: 'string' }, refreshToken: { type: 'string' }, expiresIn: { type: 'integer' } },
} as const

if (role === 'worker') startWorker()
else console.log(await startGateway())

function startWorker(): void {
  new Worker(NAME, async (job) => void (await connection.publish(channel, `${job.id} match`)), {
    connection,
    prefix,
    concurrency: SLOTS,
    removeOnComplete: { count: KEPT },
  })
  console.log('ready')
}

async function startGateway(): Promise<string> {
  const pool = new Pool({ connectionString: databaseUrl, max: POOL_SIZE })
  await pool.query(`CREATE TABLE IF NOT EXISTS floor_sessions (
    id uuid PRIMARY KEY, user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    token_hash bytea NOT NULL, expires_at timestamptz NOT NULL)`)
  const queue = new Queue(NAME, { connection, prefix })
  const waiting = new Map<string, () => void>()
  const subscriber = connection.duplicate()
  await subscriber.subscribe(channel)
  subscriber.on('message', (_channel, message) => waiting.get(message.slice(0, message.indexOf(' ')))?.())
  const { privateKey } = generateKeyPairSync('ed25519')
  const header = Buffer.from(JSON.stringify({ alg: 'EdDSA', typ: 'at+jwt' })).toString('base64url')

  function accessToken(userId: string, sessionId: string): string {
    const iat = Math.floor(Date.now() / 1_000)
    const claims = { sub: userId, sid: sessionId, iat, exp: iat + TOKEN_TTL_S, iss: NAME, aud: NAME }
    const signed = `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`
    return `${signed}.${sign(null, Buffer.from(signed), privateKey).toString('base64url')}`
  }

  async function verified(id: string, data: object): Promise<void> {
    const announced = new Promise<void>((resolve) => waiting.set(id, resolve))
    await queue.add(NAME, data, { jobId: id })
    await announced
    waiting.delete(id)
  }

  const app = fastify()
  // Nobody has a ticket of it: the answer is held, as a gateway holds its own.
  const whenDue = createRefusalPace({ perSecond: () => 0, leastDelayMs: 0, burstMs: REFUSED_AT_ONCE_MS })
  app.post('/v1/tickets/redeem', { schema: { body: TicketBody } }, (_, reply) => {
    whenDue(() => void reply.code(400).send({ status: 400, code: 'invalid_ticket' }))
  })
  app.get('/healthz', async () => ({ status: 'ok' }))
  app.post<{ Body: { email: string; password: string } }>(
    '/v1/login',
    { schema: { body: LoginBody, response: { 200: TokenBody } } },
    async ({ body: { email, password } }, reply) => {
      const found = await pool.query<{ id: string; password_hash: string }>({
        name: 'account',
        text: 'SELECT id, password_hash FROM users WHERE email = $1',
        values: [email],
      })
      const [user] = found.rows
      if (user === undefined) return reply.code(401).send()
      const sessionId = randomUUID()
      await verified(sessionId, { password, hash: user.password_hash })
      const refreshToken = randomBytes(32).toString('base64url')
      const tokenHash = createHash('sha256').update(refreshToken).digest()
      await pool.query({
        name: 'session',
        text: `INSERT INTO floor_sessions VALUES ($1, $2, $3, now() + make_interval(secs => ${SESSION_TTL_S}))`,
        values: [sessionId, user.id, tokenHash],
      })
      return { accessToken: accessToken(user.id, sessionId), refreshToken, expiresIn: TOKEN_TTL_S }
    },
  )
  return await app.listen({ host: '127.0.0.1', port: 0 })
}
