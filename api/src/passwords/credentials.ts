/** The credentials of logins, found by their e-mail addresses. */
import { type Database, gather, Prisma, rawQuery } from '@spillway/prisma'
import { NO_PASSWORD } from '@spillway/queue/wire/stored-hash'

type Credential = {
  id: string
  passwordHash: string
  credentialVersion: number
  /**
   * Why the account does not allow logins: an operator disabled it, its address is not confirmed,
   * or it was imported without a password.
   */
  barredBy: 'account_disabled' | 'address_unconfirmed' | 'no_password' | null
}

/** Finds the credentials of addresses. Lookups that wait together run as one statement. */
export class Credentials {
  readonly #database: Database
  readonly #needsConfirmedEmail: boolean
  /** Null if the address has no account. */
  readonly find: (email: string) => Promise<Credential | null>

  constructor(database: Database, { needsConfirmedEmail }: { needsConfirmedEmail: boolean }) {
    this.#database = database
    this.#needsConfirmedEmail = needsConfirmedEmail
    this.find = gather({
      several: (emails: readonly string[]) => this.#findAll(emails),
      one: async (email) => (await this.#findAll([email]))[0] ?? null,
    })
  }

  async #findAll(emails: readonly string[]): Promise<(Credential | null)[]> {
    const rows = await rawQuery<Credential & { email: string }>(
      this.#database,
      Prisma.sql`
        SELECT email, id, password_hash AS "passwordHash", credential_version AS "credentialVersion",
          CASE WHEN disabled_at IS NOT NULL THEN 'account_disabled'
            WHEN password_hash = ${NO_PASSWORD} THEN 'no_password'
            WHEN email_confirmed_at IS NULL AND ${this.#needsConfirmedEmail}::boolean THEN 'address_unconfirmed'
            END AS "barredBy"
        FROM users WHERE email = ANY (${emails}::text[])`,
    )
    const found = new Map(rows.map(({ email, ...credential }) => [email, credential]))
    return emails.map((email) => found.get(email) ?? null)
  }
}
