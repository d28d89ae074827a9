// Accounts and sessions of the rivals: the same rows as Spillway's gateway reads and writes for a login, by the same client.
import { createHash, generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto'
import type { Database } from '@spillway/prisma'

const REFRESH_TOKEN_TTL_MS = 30 * 24 * 3_600_000
const ACCESS_TOKEN_TTL_S = 900

/** An Ed25519 pair for this process alone, in PEM. */
export function signingKeys(): { private: string; public: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519', {
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  return { private: privateKey, public: publicKey }
}

export function createAccounts(database: Database, sign: (userId: string) => string) {
  return {
    find: (email: string) => database.user.findUnique({ where: { email }, select: { id: true, passwordHash: true } }),

    create: (email: string, passwordHash: string) =>
      database.user.create({ data: { id: randomUUID(), email, passwordHash }, select: { id: true, email: true } }),

    /** A session with its first refresh token, in one statement, and an access token. */
    async openSession(userId: string) {
      const refreshToken = randomBytes(32).toString('base64url')
      const expiresAt = new Date(Date.now() + REFRESH_TOKEN_TTL_MS)
      await database.$executeRaw`
        WITH session AS (
          INSERT INTO sessions (id, user_id, expires_at)
          VALUES (${randomUUID()}::uuid, ${userId}::uuid, ${expiresAt}::timestamptz) RETURNING id
        )
        INSERT INTO refresh_tokens (token_hash, session_id, expires_at)
        SELECT ${digest(refreshToken)}, id, ${expiresAt}::timestamptz FROM session`
      return { accessToken: sign(userId), refreshToken, tokenType: 'Bearer', expiresIn: ACCESS_TOKEN_TTL_S }
    },

    async closeSession(refreshToken: string) {
      const where = { tokens: { some: { tokenHash: digest(refreshToken) } }, revokedAt: null }
      await database.session.updateMany({ where, data: { revokedAt: new Date() } })
    },
  }
}

function digest(token: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(createHash('sha256').update(token).digest())
}
