/**
 * The line: all tickets for deferred jobs, in the order of their numbers. A ticket is present while
 * its client is held, or away as told, with a grace. At its turn an absent ticket is passed over,
 * unhashed, and kept apart. A ticket never redeemed, whose client is away as told, yields once to
 * held jobs in the same way. When its client comes it is next, in turns with the line; at its
 * deadline it is dropped.
 */

import type { RedisConnection } from '../redis/connect.js'
import { defineScript, toCount, toList } from '../redis/script.js'
import { BEHIND_PRIORITY, DEFERRED_PRIORITY } from '../wire/job.js'
import { type JobRef, presentKey, replyChannel, verdictKey } from '../wire/reply.js'
import { absentKey, BEHIND_BY, jobKey, lineKey, lockKey, queueKey, returnedKey } from './keys.js'
import { SEARCH_LENGTH } from './lanes.js'

/** The longest time that a client is told to stay away from its ticket, in milliseconds. */
export const AWAY_MS = 5_000
/** How long a client may be late, or reload its page, in milliseconds. */
const GRACE_MS = 5_000

/** How long a ticket is present whose client is held for `waitMs`: at most its job's life. */
export function presentMs(waitMs: number, lifeMs: number): number {
  return Math.max(1, Math.ceil(Math.min(waitMs + AWAY_MS + GRACE_MS, lifeMs)))
}

/** BullMQ's scores of deferred jobs: whole numbers from here, halves where a client came back. */
export const FIRST_SCORE = DEFERRED_PRIORITY * 2 ** 32
/** Where the scores of jobs that are behind begin. */
export const FIRST_SCORE_BEHIND = BEHIND_PRIORITY * 2 ** 32

const giveNumber = defineScript('enterLine-3')
const askOfTicket = defineScript('readTicket-11')
const leavePlace = defineScript('leave-1')
const passOverJob = defineScript('passOver-8')
const setJobAside = defineScript('setAside-5')
const storeAndAnnounce = defineScript('storeVerdict-2')

/** Jobs ahead of a job. `held` are in hand, or wait for no deferred one. */
export interface Place {
  held: number
  deferred: number
}

export interface TicketState {
  /** Sealed. `malformed` where the key is of another type, which workers do not write. */
  verdict: string | 'malformed' | undefined
  /** Whether the job is still there, and has not failed. */
  exists: boolean
  /** Undefined for a job that was never deferred. */
  number: number | undefined
  place: Place
}

/** The client that holds a redemption at this gateway. */
export interface Presence {
  replyTo: string
  forMs: number
}

/** Gives a deferred job its number, above the last one that is known here. */
export async function enterLine(
  redis: RedisConnection,
  prefix: string,
  { id }: { id: string },
  presence: Presence | undefined,
  lastKnown: number,
): Promise<number> {
  const keys = [jobKey(prefix, id), lineKey(prefix), presentKey(prefix, id)]
  return toCount(await giveNumber(redis, keys, presence?.replyTo ?? '', presence?.forMs ?? 0, lastKnown))
}

/** Reads a ticket; with a presence its client is there from now on. */
export async function readTicket(
  redis: RedisConnection,
  prefix: string,
  { id, deadline }: Pick<JobRef, 'id' | 'deadline'>,
  presence?: Presence,
): Promise<TicketState> {
  const parts = ['prioritized', 'wait', 'active'] as const
  const keys = [
    ...[verdictKey(prefix, id), presentKey(prefix, id), jobKey(prefix, id)],
    ...parts.map((part) => queueKey(prefix, part)),
    ...[absentKey(prefix), queueKey(prefix, 'marker'), queueKey(prefix, 'meta'), lineKey(prefix), returnedKey(prefix)],
  ]
  const { replyTo = '', forMs = 0 } = presence ?? {}
  const args = [id, SEARCH_LENGTH, FIRST_SCORE, replyTo, forMs, DEFERRED_PRIORITY, FIRST_SCORE_BEHIND, deadline]
  const [verdict, exists, number, deferred, held] = toList(await askOfTicket(redis, keys, ...args))
  return {
    verdict: typeof verdict === 'string' ? verdict : toCount(verdict) === 1 ? 'malformed' : undefined,
    exists: exists === 1,
    number: toCount(number) || undefined,
    place: { held: toCount(held), deferred: toCount(deferred) },
  }
}

/** Gives the place up after the grace, unless its client comes again. */
export async function leave(redis: RedisConnection, prefix: string, jobId: string, replyTo: string): Promise<void> {
  await leavePlace(redis, [presentKey(prefix, jobId)], replyTo, GRACE_MS)
}

/** Passes over an active job whose client is absent. False where the job is to be done. */
export async function passOver(
  redis: RedisConnection,
  prefix: string,
  { id, deadline }: Pick<JobRef, 'id' | 'deadline'>,
  token: string,
  isBehind = false,
): Promise<boolean> {
  const keys = [
    ...[presentKey(prefix, id), lockKey(prefix, id), queueKey(prefix, 'active'), queueKey(prefix, 'stalled')],
    ...[absentKey(prefix), jobKey(prefix, id), queueKey(prefix, 'wait'), returnedKey(prefix)],
  ]
  const args = [id, token, deadline, isBehind ? 1 : 0, AWAY_MS + GRACE_MS, BEHIND_BY]
  return (await passOverJob(redis, keys, ...args)) === 1
}

/** Sets an active job aside, and announces a verdict that is not kept: see `unavailable`. */
export async function setAside(
  redis: RedisConnection,
  prefix: string,
  { id, deadline, replyTo }: Pick<JobRef, 'id' | 'deadline'> & { replyTo: string },
  token: string,
  sealed: string,
): Promise<void> {
  const keys = [
    ...[lockKey(prefix, id), queueKey(prefix, 'active'), queueKey(prefix, 'stalled')],
    ...[absentKey(prefix), presentKey(prefix, id)],
  ]
  await setJobAside(redis, keys, id, token, deadline, sealed, replyChannel(prefix, ''), replyTo)
}

/** Stores a sealed verdict for `keepMs`, and announces it where its client may wait. */
export async function storeVerdict(
  redis: RedisConnection,
  prefix: string,
  { id, replyTo }: { id: string; replyTo: string },
  sealed: string,
  keepMs: number,
): Promise<void> {
  const keys = [verdictKey(prefix, id), presentKey(prefix, id)]
  await storeAndAnnounce(redis, keys, sealed, keepMs, replyChannel(prefix, ''), replyTo, id)
}
