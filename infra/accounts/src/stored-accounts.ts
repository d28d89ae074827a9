// Stored accounts as an operator sees them: how many have hashes of which format and cost, all as
// NDJSON, or one of them.
import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { insertEvents } from '@spillway/api/audit/store'
import { parseEmailAddress } from '@spillway/api/email-address'
import { UserError } from '@spillway/infra/processes/command-line'
import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import { newId } from '@spillway/queue/wire/id'
import { ASK_OLD_SYSTEM, parseStoredHash } from '@spillway/queue/wire/stored-hash'
import { createReader } from '@spillway/worker/hashing/formats/list'

const BATCH = 20_000

/** By the format of a hash, and its cost if it is one of new hashes; the most first. */
export async function countHashes(database: Database): Promise<[hashes: string, accounts: number][]> {
  const counts = new Map<string, number>()
  const kindOf = createKinds()
  for await (const rows of pagesOfAccounts<{ id: string; hash: string }>(
    database,
    Prisma.sql`password_hash AS hash`,
    BATCH,
  )) {
    for (const { hash } of rows) {
      const kind = kindOf(hash)
      counts.set(kind, (counts.get(kind) ?? 0) + 1)
    }
  }
  return [...counts].sort(([, a], [, b]) => b - a)
}

/** `argon2id, m=19456,t=2,p=1`, `bcrypt, cost 12`; else the name of the format alone. */
export function createKinds(): (hash: string) => string {
  const read = createReader({ firebase: undefined, peppers: [] })
  return (hash) => {
    const stored = parseStoredHash(hash)
    if (stored?.algorithm === 'bcrypt') return `bcrypt, cost ${stored.cost}`
    if (stored !== undefined)
      return `${stored.algorithm}, m=${stored.memoryKib},t=${stored.time},p=${stored.parallelism}`
    if (hash === ASK_OLD_SYSTEM) return 'no hash: the old system is asked'
    if (hash.startsWith('$firebase-scrypt$')) return 'Firebase scrypt'
    if (hash.startsWith('$of$'))
      return `hash of what was made of the password: ${/^\$of\$([\w:,-]{1,128})\$/.exec(hash)?.[1] ?? ''}`
    return read(hash)?.format.name ?? 'no known format'
  }
}

/** By ids: accounts that are created meanwhile may be left out. `id` is the first column. */
async function* pagesOfAccounts<Row extends { id: string }>(
  database: Database,
  columns: Prisma.Sql,
  size: number,
): AsyncGenerator<Row[]> {
  let after = '00000000-0000-0000-0000-000000000000'
  for (;;) {
    const sql = Prisma.sql`SELECT id, ${columns} FROM users WHERE id > ${after}::uuid ORDER BY id LIMIT ${size}`
    const rows = await rawQuery<Row>(database, sql)
    yield rows
    if (rows.length < size) return
    after = rows.at(-1)?.id ?? after
  }
}

// Writes all accounts as NDJSON, in the form that import reads: for leaving, or for moving between
// systems.

const EXPORT_BATCH = 5_000

type Row = { id: string; email: string; passwordHash: string; createdAt: Date; emailConfirmedAt: Date | null }

const columns = Prisma.sql`email, password_hash AS "passwordHash", created_at AS "createdAt", email_confirmed_at AS "emailConfirmedAt"`

/** Returns how many. */
export async function exportAccounts(database: Database, to: Writable): Promise<number> {
  let count = 0
  for await (const rows of pagesOfAccounts<Row>(database, columns, EXPORT_BATCH)) {
    for (const row of rows) {
      if (!to.write(`${JSON.stringify(row)}\n`)) await once(to, 'drain')
    }
    count += rows.length
  }
  return count
}

// One account as an operator sees it, and whether anybody may log in to it.

/**
 * Disables an account, which ends its sessions, or enables it again. Returns whether that changed
 * anything. Throws a UserError for no account.
 */
export async function setDisabled(database: Database, address: string, isDisabled: boolean): Promise<boolean> {
  const { id } = await accountOf(database, address)
  const changed = await database.$transaction(async (transaction) => {
    const { count } = await transaction.user.updateMany({
      where: { id, disabledAt: isDisabled ? null : { not: null } },
      data: { disabledAt: isDisabled ? new Date() : null },
    })
    // After the update, which waits for logins that are opening sessions.
    if (isDisabled)
      await transaction.$executeRaw`
        UPDATE sessions SET revoked_at = now(), expires_at = now()
        WHERE user_id = ${id}::uuid AND revoked_at IS NULL`
    return count > 0
  })
  const now = Date.now()
  const event = isDisabled ? 'disable_account' : 'enable_account'
  const nobody = { sessionId: null, address: null, isKnownDevice: null, failures: null, operator: null, reason: null }
  if (changed)
    await insertEvents(database, [
      { id: newId(now), at: new Date(now), event, outcome: 'ok', count: 1, userId: id, ...nobody },
    ])
  return changed
}

/** An account in lines, for operators. Of its hash, only the format and the cost. */
export async function describeAccount(database: Database, address: string): Promise<string[]> {
  const { id, email, passwordHash, createdAt, emailConfirmedAt, disabledAt } = await accountOf(database, address)
  const sql = Prisma.sql`
    SELECT count(*)::int AS live FROM sessions WHERE user_id = ${id}::uuid AND revoked_at IS NULL AND expires_at > now()`
  const [sessions] = await rawQuery<{ live: number }>(database, sql)
  const lines = {
    address: email,
    id,
    created: createdAt.toISOString(),
    confirmed: emailConfirmedAt?.toISOString() ?? 'no',
    disabled: disabledAt?.toISOString() ?? 'no',
    hash: createKinds()(passwordHash),
    sessions: String(sessions?.live ?? 0),
  }
  return Object.entries(lines).map(([name, value]) => `${name.padEnd(10)} ${value}`)
}

async function accountOf(database: Database, address: string) {
  const email = parseEmailAddress(address)
  if (email === undefined) throw new UserError(`"${address}" is no e-mail address.`)
  const account = await database.user.findUnique({ where: { email } })
  if (account === null) throw new UserError(`There is no account of ${email}.`)
  return account
}
