/** The credentials of logins, found by their e-mail addresses. */
import { type Database, gather, Prisma, rawQuery, type User } from '@spillway/prisma'
import { ASK_OLD_SYSTEM } from '@spillway/queue/wire/stored-hash'
import { hasTombstone } from '../sessions/deleted-addresses.js'

type Credential = Pick<User, 'id' | 'passwordHash' | 'credentialVersion'> & {
  /** Why nobody may log in: an operator disabled the account, or its address must be confirmed. */
  barredBy: 'account_disabled' | 'address_unconfirmed' | null
  /** Whether it came without a hash, and the old system may be asked. */
  mayBeAsked: boolean
}

interface FoundCredential {
  /** Null where the address has no account. */
  user: Credential | null
  ask: boolean
}

/** Finds the credentials of addresses. Lookups that wait together go as one statement. */
export class Credentials {
  readonly #database: Database
  readonly #options: { needsConfirmedEmail: boolean; asksOldSystem: boolean }
  readonly find: (email: string) => Promise<FoundCredential>

  /** @param options.asksOldSystem about accounts that are not here, or came without a hash */
  constructor(database: Database, options: { needsConfirmedEmail: boolean; asksOldSystem: boolean }) {
    this.#database = database
    this.#options = options
    this.find = gather({
      several: (emails: readonly string[]) => this.#findAll(emails),
      one: async (email) => (await this.#findAll([email]))[0] ?? { user: null, ask: false },
    })
  }

  async #findAll(emails: readonly string[]): Promise<FoundCredential[]> {
    const { needsConfirmedEmail, asksOldSystem } = this.#options
    const hadAccount = asksOldSystem
      ? Prisma.sql`id IS NULL AND ${hasTombstone(Prisma.sql`address`)}`
      : Prisma.sql`false`
    const rows = await rawQuery<{ address: string; hadAccount: boolean } & (Credential | { id: null })>(
      this.#database,
      Prisma.sql`
        SELECT address, id, password_hash AS "passwordHash", credential_version AS "credentialVersion",
          CASE WHEN disabled_at IS NOT NULL THEN 'account_disabled'
            WHEN email_confirmed_at IS NULL AND ${needsConfirmedEmail}::boolean THEN 'address_unconfirmed' END AS "barredBy",
          disabled_at IS NULL AND password_hash = ${ASK_OLD_SYSTEM} AS "mayBeAsked", ${hadAccount} AS "hadAccount"
        FROM unnest(${emails}::text[]) AS asked (address) LEFT JOIN users ON email = address`,
    )
    const found = new Map(rows.map((row) => [row.address, row]))
    return emails.map((email) => {
      const row = found.get(email)
      if (row === undefined || row.id === null) return { user: null, ask: asksOldSystem && row?.hadAccount !== true }
      return { user: row, ask: asksOldSystem && row.mayBeAsked }
    })
  }
}
