// One account as an operator sees it, and whether anybody may log in to it.
import { insertEvents } from '@spillway/api/audit/store'
import { parseEmailAddress } from '@spillway/api/email-address'
import { newId } from '@spillway/client/protocol/id'
import { UserError } from '@spillway/local/processes/command-line'
import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import { createKinds } from './all-accounts.ts'

/** Disables an account, which ends its sessions, or enables it again. Returns whether that changed anything. Throws a UserError for no account. */
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
  const nobody = { sessionId: null, address: null }
  if (changed)
    await insertEvents(database, [
      { id: newId(now), at: new Date(now), event, outcome: 'ok', count: 1, userId: id, ...nobody },
    ])
  return changed
}

/** What there is to say of an account, in lines. Nothing of its hash but the format and the cost. */
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
