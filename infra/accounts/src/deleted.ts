// Addresses whose accounts were deleted or have another address now: an import leaves them out.
// Deletions and changes leave digests that are keyed with the seal keys of gateways.
import { deletedAddressDigests } from '@spillway/api/deletion'
import { UserError } from '@spillway/infra/processes/command-line'
import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import { type Keyring, parseKeyring } from '@spillway/queue/client'

/** Finds those of many addresses and ids whose accounts were deleted, or have another address now. */
export type FindDeleted = (names: readonly string[]) => Promise<ReadonlySet<string>>

/** Throws a UserError if a digest was made with a key that is not among the seal keys. */
export async function openDeleted(database: Database, sealKeys: string | undefined): Promise<FindDeleted> {
  const keyring = sealKeys === undefined ? undefined : parseKeyring(sealKeys)
  const used = await rawQuery<{ id: string }>(database, Prisma.sql`SELECT DISTINCT key_id AS id FROM deleted_addresses`)
  const missing = used.map(({ id }) => id).filter((id) => !keyring?.kids().includes(id))
  if (missing.length > 0)
    throw new UserError(
      `Accounts were deleted here, or have another address now, and the import must not bring them back: set SPILLWAY_SEAL_KEYS to a list that has the keys ${missing.join(', ')}.`,
    )
  return async (names) => (keyring === undefined ? new Set() : await findDeleted(database, keyring, names))
}

async function findDeleted(database: Database, keyring: Keyring, names: readonly string[]): Promise<Set<string>> {
  const base64 = (name: string) => deletedAddressDigests(name, keyring).map((digest) => digest.toString('base64'))
  const namesBy = new Map(names.flatMap((name) => base64(name).map((digest) => [digest, name] as const)))
  const sql = Prisma.sql`
    SELECT encode(digest, 'base64') AS digest FROM deleted_addresses
    WHERE digest = ANY (ARRAY(SELECT decode(unnest(${[...namesBy.keys()]}::text[]), 'base64')))`
  const found = await rawQuery<{ digest: string }>(database, sql)
  return new Set(found.flatMap(({ digest }) => namesBy.get(digest) ?? []))
}
