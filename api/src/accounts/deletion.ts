/**
 * Deletes an account with what belongs to it, for its owner and for operators. Digests of
 * address and id stay, keyed with the seal keys, so that an import does not bring the account back.
 */
import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import type { Keyring } from '@spillway/queue/client'
import type { Guessing } from '../limits/guessing.js'
import type { Post } from '../mail/post.js'

interface DeletionDeps {
  database: Database
  guessing: Guessing
  keyring: Keyring
  /** Undefined if no mail is sent. */
  post: Post | undefined
}

interface AccountToDelete {
  id: string
  email: string
  /** Deletes the account only while its credential has this version [any]. */
  credentialVersion?: number
}

/**
 * Deletes an account, its sessions and links, links of other accounts to its address, its counts of
 * failures, and its unsent mails. The counts of its mails remain for an hour: otherwise a deletion
 * would reset the limit of mails to the address. Resolves with `gone` if there was no such account,
 * and with `not_erased` if its credential has another version.
 *
 * @throws `unavailable` without Redis, or while a mail to the account is being sent for too long;
 *   then the account is still there
 */
export async function eraseAccount(
  { database, guessing, keyring, post }: DeletionDeps,
  { id, email, credentialVersion }: AccountToDelete,
): Promise<'erased' | 'gone' | 'not_erased'> {
  const forget = async () => {
    await guessing.forgetAccount({ id, email })
    await post?.forget({ id, email })
  }
  // This goes before the account: if Redis is unreachable, counts and mails would stay.
  await forget()
  const ofVersion =
    credentialVersion === undefined ? Prisma.empty : Prisma.sql`AND credential_version = ${credentialVersion}`
  const sql = Prisma.sql`
    WITH deleted AS (
      DELETE FROM users WHERE id = ${id}::uuid ${ofVersion} RETURNING email
    ), links AS (
      DELETE FROM mail_tokens USING deleted WHERE mail_tokens.email = deleted.email
    ), left_out AS (${leaveOut([email, id], keyring, Prisma.sql`deleted`)})
    SELECT FROM deleted`
  const isErased = (await rawQuery(database, sql)).length > 0
  if (!isErased && (await database.user.count({ where: { id } })) > 0) return 'not_erased'
  // Once more, for what was added meanwhile. If it fails, the rest lapses.
  await forget().catch(() => undefined)
  return isErased ? 'erased' : 'gone'
}

/**
 * The statement that makes imports leave out addresses which accounts no longer have, and the ids of
 * deleted accounts: otherwise an old file would bring the account back, with its old password.
 *
 * @param from a query with one row if the account has left the address, and with none otherwise
 */
export function leaveOut(names: readonly string[], keyring: Keyring, from: Prisma.Sql): Prisma.Sql {
  const digests = names.map((name) => deletedAddressDigests(name, keyring)[0])
  return Prisma.sql`
    INSERT INTO deleted_addresses (digest, key_id) SELECT unnest(${digests}::bytea[]), ${keyring.kids()[0]} FROM ${from}
    ON CONFLICT DO NOTHING`
}

/**
 * The digests of an address or id, by which an import recognizes it: one for each key, in the order
 * of the keys.
 */
export function deletedAddressDigests(addressOrId: string, keyring: Keyring): [Buffer, ...Buffer[]] {
  return keyring.macs({ purpose: 'deleted-address', id: addressOrId })
}
