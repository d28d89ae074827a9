// The server all rivals share: Spillway's API and tables, in the same Fastify. They differ in
// where and how they hash.
import { createHash, generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import jwt from '@fastify/jwt'
import { connectDatabase, type Database } from '@spillway/prisma'
import Fastify from 'fastify'
import { algorithms, type Hashing } from './hashing.ts'

/** As Spillway's gateway: Node's own 511 lose connections when thousands of users come at once. */
export const BACKLOG = 4_096

export const credentials = {
  type: 'object',
  required: ['email', 'password'],
  properties: { email: { type: 'string', maxLength: 254 }, password: { type: 'string', minLength: 8, maxLength: 128 } },
}
const refresh = { type: 'object', required: ['refreshToken'], properties: { refreshToken: { type: 'string' } } }
export const TOKEN = { tokenType: 'Bearer', expiresIn: 900 }
const REFRESH_TOKEN_TTL_MS = 30 * 24 * 3_600_000
export type Credentials = { Body: { email: string; password: string } }
type Refresh = { Body: { refreshToken: string } }

/** Serves on any free port until the process is killed, and says where. */
export async function serve(hashing: Hashing): Promise<string> {
  const { DATABASE_URL: url, ALGORITHM } = process.env
  const algorithm = algorithms.find((name) => name === ALGORITHM)
  if (url === undefined || algorithm === undefined) throw new Error('DATABASE_URL and ALGORITHM are needed')
  // Patient, as most applications: a new connection's password exchange waits where libuv's threads
  // hash.
  const patience = { connectionTimeoutMs: 60_000, statementTimeoutMs: 60_000 }
  const database = connectDatabase({ url, poolSize: 10, ...patience })
  const app = Fastify({ logger: true, disableRequestLogging: true })
  // One line a request, as Spillway's gateway writes.
  app.addHook('onResponse', async ({ method, routeOptions, log }, { statusCode, elapsedTime }) => {
    log.info({ method, route: routeOptions.url, status: statusCode, ms: elapsedTime }, 'request')
  })
  await app.register(jwt, { secret: signingKeys(), sign: { algorithm: 'EdDSA', expiresIn: '15m' } })

  app.post<Credentials>('/v1/users', { schema: { body: credentials } }, async ({ body }, reply) => {
    const passwordHash = await hashing.hash(body.password, algorithm)
    const data = { id: randomUUID(), email: body.email, passwordHash }
    return reply.code(201).send(await database.user.create({ data, select: { id: true, email: true } }))
  })
  app.post<Credentials>('/v1/login', { schema: { body: credentials } }, async ({ body }, reply) => {
    const select = { id: true, passwordHash: true }
    const user = await database.user.findUnique({ where: { email: body.email }, select })
    if (user === null || !(await hashing.verify(body.password, user.passwordHash))) {
      return reply.code(401).send({ status: 401, code: 'invalid_credentials' })
    }
    const accessToken = app.jwt.sign({ sub: user.id })
    return { accessToken, refreshToken: await openSession(database, user.id), ...TOKEN }
  })
  app.post<Refresh>('/v1/logout', { schema: { body: refresh } }, async ({ body }, reply) => {
    const [id = ''] = body.refreshToken.split('.')
    const where = { id, tokenHash: digest(body.refreshToken), revokedAt: null }
    await database.session.updateMany({ where, data: { revokedAt: new Date() } })
    return reply.code(204).send()
  })
  app.get('/neighbour', async () => ({ size: (await stat(neighbour)).size }))
  app.get('/healthz', async () => ({ status: 'ok' }))

  return app.listen({ host: '127.0.0.1', port: 0, backlog: BACKLOG })
}

/** Prints that this process can be reached. */
export function announce(url: string): void {
  console.log(JSON.stringify({ msg: 'listening', url }))
}

const neighbour = fileURLToPath(import.meta.url)

/** An Ed25519 pair for this process alone, in PEM. */
function signingKeys(): { private: string; public: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519', {
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  return { private: privateKey, public: publicKey }
}

/** The row that Spillway's gateway writes for a login. Resolves with its first refresh token. */
async function openSession(database: Database, userId: string): Promise<string> {
  const id = randomUUID()
  const refreshToken = `${id}.${randomBytes(32).toString('base64url')}`
  const expiresAt = new Date(Date.now() + REFRESH_TOKEN_TTL_MS)
  await database.$executeRaw`
    INSERT INTO sessions (id, user_id, expires_at, idle_ends_at, family_hash, token_hash)
    VALUES (${id}::uuid, ${userId}::uuid, ${expiresAt}::timestamptz, ${expiresAt}::timestamptz, '', ${digest(refreshToken)})`
  return refreshToken
}

function digest(token: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(createHash('sha256').update(token).digest())
}
