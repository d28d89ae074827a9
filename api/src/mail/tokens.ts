/**
 * Tokens in mails: 256 random bits, stored as SHA-256, valid for one use until they expire. A token
 * is bound to its account and address. A token that can take the account over is also bound to the
 * current password.
 */
import { createHash, randomBytes } from 'node:crypto'
import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import type { Keyring } from '@spillway/queue/client'
import { newId } from '@spillway/queue/wire/id'
import { leaveOut } from '../accounts/deletion.js'

/** Confirms an address, changes it, or resets the password. */
export type TokenPurpose = 'confirm' | 'change' | 'reset'

const TOKEN_BYTES = 32

export function newMailToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url')
}

export function mailTokenDigest(token: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(createHash('sha256').update(token).digest())
}

/** The expiry of a token that is stored now, by PostgreSQL's clock, which also checks it. */
export function expiryIn(lifeMs: number): Prisma.Sql {
  return Prisma.sql`now() + ${lifeMs}::float8 * interval '1 millisecond'`
}

export interface IssueToken {
  token: string
  purpose: TokenPurpose
  /** The account of the token, by its id, with this version of its credential [any], or by its address. */
  account: { id: string; credentialVersion?: number } | { email: string }
  /** The address to which the account is to be changed [its own]. */
  newEmail?: string
  /** How long ago it was asked for, in milliseconds [0]. */
  ageMs?: number
  /** How long the token is valid from now on, in milliseconds. */
  lifeMs: number
}

/** A token that was asked for just before a change that voids it counts as later: clocks differ. */
const CLOCKS_MS = 1_000

/**
 * Stores a token; further calls with the same token do not store it again. Returns the address to
 * which it is sent; undefined if there is no such account, if it is disabled, if the token was
 * used or is void, or if it was asked for before an operator ended all sessions or the address
 * changed. A change of the password voids all links but those that confirm the address.
 */
export async function issueToken(database: Database, options: IssueToken): Promise<string | undefined> {
  const { token, purpose, account, newEmail = null, ageMs = 0, lifeMs } = options
  const digest = mailTokenDigest(token)
  const owner =
    'id' in account
      ? Prisma.sql`id = ${account.id}::uuid AND credential_version = coalesce(${account.credentialVersion ?? null}::int, credential_version)`
      : Prisma.sql`email = ${account.email}`
  const voidBefore =
    purpose === 'confirm' ? Prisma.sql`links_void_before` : Prisma.sql`greatest(links_void_before, password_changed_at)`
  const [found] = await rawQuery<{ to: string }>(
    database,
    Prisma.sql`
      WITH owner AS (
        SELECT id, coalesce(${newEmail}::text, email) AS email, credential_version FROM users
        WHERE ${owner} AND disabled_at IS NULL AND (${voidBefore} < ${expiryIn(CLOCKS_MS - ageMs)}) IS NOT FALSE
      ), issued AS (
        INSERT INTO mail_tokens (id, token_hash, purpose, user_id, email, credential_version, expires_at)
        SELECT ${newId()}::uuid, ${digest}, ${purpose}, id, email, credential_version, ${expiryIn(lifeMs)} FROM owner
        ON CONFLICT DO NOTHING
      )
      SELECT email AS to FROM owner WHERE NOT EXISTS (
        SELECT FROM mail_tokens WHERE token_hash = ${digest}
          AND (used_at IS NOT NULL OR purpose <> 'confirm' AND mail_tokens.credential_version <> owner.credential_version))`,
  )
  return found?.to
}

type TokenOwner = { id: string; email: string }

interface Confirmed {
  /** The address before the change, and whether it was confirmed; undefined without a change. */
  changedFrom: { email: string; isConfirmed: boolean } | undefined
}

/** The account of a token, whether or not the token is valid. */
export async function ownerOf(database: Database, token: string): Promise<TokenOwner | undefined> {
  const sql = Prisma.sql`
    SELECT id, email FROM users WHERE id = (SELECT user_id FROM mail_tokens WHERE token_hash = ${mailTokenDigest(token)})`
  const [owner] = await rawQuery<TokenOwner>(database, sql)
  return owner
}

/**
 * Uses a token that confirms or changes the address of its owner. Returns undefined if the token is
 * expired, used or void, if its account is disabled or has another address by now, or if the new
 * address belongs to another account.
 */
export async function confirmAddress(
  { database, keyring }: { database: Database; keyring: Keyring },
  token: string,
  owner: TokenOwner,
): Promise<Confirmed | undefined> {
  const digest = mailTokenDigest(token)
  const left = Prisma.sql`confirmed WHERE before IS NOT NULL`
  // The owner is locked first, so that tokens of one account are used one after the other.
  const [confirmed] = await rawQuery<{ before: string | null; wasConfirmed: boolean }>(
    database,
    Prisma.sql`
      WITH owner AS (
        SELECT id, email, credential_version, email_confirmed_at IS NOT NULL AS was_confirmed FROM users
        WHERE id = ${owner.id}::uuid AND email = ${owner.email} AND disabled_at IS NULL FOR UPDATE
      ), token AS (
        UPDATE mail_tokens AS used SET used_at = now() FROM owner
        WHERE token_hash = ${digest} AND used_at IS NULL AND expires_at > now() AND user_id = owner.id AND (
          (purpose = 'confirm' AND used.email = owner.email) OR
          (purpose = 'change' AND used.credential_version = owner.credential_version)
        )
        RETURNING used.user_id, used.email, used.purpose, owner.email AS before, owner.was_confirmed
      ), confirmed AS (
        UPDATE users SET email = token.email, email_confirmed_at = now(), updated_at = now(),
          links_void_before = CASE WHEN token.email = token.before THEN links_void_before ELSE now() END FROM token
        WHERE id = token.user_id AND NOT EXISTS (SELECT FROM users AS others WHERE others.email = token.email AND others.id <> token.user_id)
        RETURNING id, nullif(token.before, token.email) AS before, token.was_confirmed, token.purpose
      ), void AS (
        UPDATE mail_tokens SET used_at = now() FROM confirmed
        WHERE user_id = confirmed.id AND mail_tokens.purpose = confirmed.purpose AND token_hash <> ${digest} AND used_at IS NULL
      ), left_out AS (${leaveOut([owner.email], keyring, left)})
      SELECT before, was_confirmed AS "wasConfirmed" FROM confirmed`,
  )
  if (confirmed === undefined) return undefined
  const { before, wasConfirmed } = confirmed
  return { changedFrom: before === null ? undefined : { email: before, isConfirmed: wasConfirmed } }
}

/** The account whose password a token may reset; undefined for a token that may not. */
export async function resettable(
  database: Database,
  token: string,
): Promise<{ id: string; email: string } | undefined> {
  const [owner] = await rawQuery<{ id: string; email: string }>(
    database,
    Prisma.sql`SELECT users.id, users.email FROM users JOIN mail_tokens AS token ON ${resets} WHERE token_hash = ${mailTokenDigest(token)}`,
  )
  return owner
}

/** The condition, on `users` and `token`, under which a token may reset the password. */
const resets = Prisma.sql`(token.user_id = users.id AND disabled_at IS NULL AND purpose = 'reset' AND used_at IS NULL AND token.expires_at > now() AND
  token.email = users.email AND token.credential_version = users.credential_version)`

/** Uses a token, by its base64 digest. Returns the account; undefined if it is not valid. */
export async function resetPassword(
  transaction: Prisma.TransactionClient,
  { tokenHash, passwordHash }: { tokenHash: string; passwordHash: string },
): Promise<{ id: string; email: string; credentialVersion: number } | undefined> {
  const digest = new Uint8Array(Buffer.from(tokenHash, 'base64'))
  const [user] = await transaction.$queryRaw<{ id: string; email: string; credentialVersion: number }[]>`
    WITH users AS (
      SELECT id, email, credential_version, disabled_at FROM users
      WHERE id = (SELECT user_id FROM mail_tokens WHERE token_hash = ${digest}) FOR UPDATE
    ), used AS (
      UPDATE mail_tokens AS token SET used_at = now() FROM users WHERE token_hash = ${digest} AND ${resets} RETURNING user_id
    )
    UPDATE users AS owner SET password_hash = ${passwordHash}, credential_version = credential_version + 1,
      password_changed_at = now(), email_confirmed_at = coalesce(email_confirmed_at, now()), updated_at = now()
    FROM used WHERE owner.id = used.user_id RETURNING owner.id::text, owner.email, owner.credential_version AS "credentialVersion"`
  return user
}
