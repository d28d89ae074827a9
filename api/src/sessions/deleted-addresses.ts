/**
 * While the old system is asked, addresses that accounts had are remembered as tombstones: keyed
 * digests, written by triggers of the database. Otherwise the old password would bring a deleted
 * account back. The key is in the database; its being there turns the triggers on.
 */
import { randomBytes } from 'node:crypto'
import { type Database, Prisma, rawQuery } from '@spillway/prisma'
import type { FastifyBaseLogger } from 'fastify'
import { Rounds } from '../rounds.js'

const KEY_BYTES = 32
/** Until the database answers. */
const RETRY_MS = 1_000

/** Turns the triggers on, as soon as the database answers. They stay on. */
export function rememberDeletedAddresses(database: Database, log: FastifyBaseLogger): Rounds {
  let isOn = false
  return new Rounds({
    periodMs: RETRY_MS,
    async round() {
      if (isOn) return
      const key = randomBytes(KEY_BYTES)
      await rawQuery(database, Prisma.sql`INSERT INTO tombstone_key (key) VALUES (${key}) ON CONFLICT DO NOTHING`)
      isOn = true
    },
    onFailure: (error) => log.warn({ err: error }, 'deleted addresses are not remembered yet'),
  })
}

/** Whether an account had this address, and has it no more. */
export function hasTombstone(email: Prisma.Sql): Prisma.Sql {
  return Prisma.sql`EXISTS (
    SELECT FROM tombstones JOIN tombstone_key ON digest = sha256(key || convert_to(${email}::text, 'UTF8')))`
}
