/** The credential of a login's address. Lookups that wait together go as one statement. */
import { type Database, gather, Prisma, rawQuery, type User } from '@spillway/prisma'

export type Credential = Pick<User, 'id' | 'passwordHash' | 'credentialVersion'> & {
  /** Whether the address is confirmed, or need not be, and no operator disabled the account. */
  mayLogIn: boolean
}

/** Resolves with the credential of an address in its one form, or null where it has no account. */
export type FindCredential = (email: string) => Promise<Credential | null>

/** @param needsConfirmedEmail whether only accounts whose address is confirmed log in */
export function createFindCredential(database: Database, needsConfirmedEmail: boolean): FindCredential {
  const columns = Prisma.sql`
    id, password_hash AS "passwordHash", credential_version AS "credentialVersion",
    disabled_at IS NULL AND (email_confirmed_at IS NOT NULL OR NOT ${needsConfirmedEmail}::boolean) AS "mayLogIn"`
  return gather({
    async one(email) {
      const [user] = await rawQuery<Credential>(
        database,
        Prisma.sql`SELECT ${columns} FROM users WHERE email = ${email}`,
      )
      return user ?? null
    },
    async several(emails) {
      const sql = Prisma.sql`SELECT email, ${columns} FROM users WHERE email = ANY (${emails}::text[])`
      const rows = await rawQuery<Credential & Pick<User, 'email'>>(database, sql)
      const found = new Map(rows.map(({ email, ...user }) => [email, user]))
      return emails.map((email) => found.get(email) ?? null)
    },
  })
}
