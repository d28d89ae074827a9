// Addresses whose accounts were deleted or have another address now: an import leaves them out.
// Deletions and changes leave digests that are keyed with the seal keys of gateways.
import { deletedAddressDigests } from '@spillway/api/deletion'
import { UserError } from '@spillway/infra/processes/command-line'
import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import { type Keyring, parseKeyring } from '@spillway/queue/client'

/** Finds those of many addresses whose accounts were deleted, or have another address now. */
export type FindDeleted = (emails: readonly string[]) => Promise<ReadonlySet<string>>

/** Throws a UserError if a digest was made with a key that is not among the seal keys. */
export async function openDeleted(database: Database, sealKeys: string | undefined): Promise<FindDeleted> {
  const keyring = sealKeys === undefined ? undefined : parseKeyring(sealKeys)
  const used = await rawQuery<{ id: string }>(database, Prisma.sql`SELECT DISTINCT key_id AS id FROM deleted_addresses`)
  const missing = used.map(({ id }) => id).filter((id) => !keyring?.kids().includes(id))
  if (missing.length > 0)
    throw new UserError(
      `Accounts were deleted here, or have another address now, and the import must not bring them back: set SPILLWAY_SEAL_KEYS to a list that has the keys ${missing.join(', ')}.`,
    )
  return async (emails) => (keyring === undefined ? new Set() : await findDeleted(database, keyring, emails))
}

async function findDeleted(database: Database, keyring: Keyring, emails: readonly string[]): Promise<Set<string>> {
  const base64 = (email: string) => deletedAddressDigests(email, keyring).map((digest) => digest.toString('base64'))
  const emailsBy = new Map(emails.flatMap((email) => base64(email).map((digest) => [digest, email] as const)))
  const sql = Prisma.sql`
    SELECT encode(digest, 'base64') AS digest FROM deleted_addresses
    WHERE digest = ANY (ARRAY(SELECT decode(unnest(${[...emailsBy.keys()]}::text[]), 'base64')))`
  const found = await rawQuery<{ digest: string }>(database, sql)
  return new Set(found.flatMap(({ digest }) => emailsBy.get(digest) ?? []))
}
