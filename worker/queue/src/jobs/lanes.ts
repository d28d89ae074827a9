/**
 * The lane of known devices, and ageing (below). Jobs of known devices overtake other held ones, in
 * their own order: gateways leave one other job between two of them (moveForward). So they get at
 * most half of the workers' capacity while others wait, however many there are.
 */
import type { RedisConnection } from '../redis/connect.js'
import { defineScript } from '../redis/script.js'
import { jobKey, lastKnownKey, queueKey } from './keys.js'

/** Entries searched from the next to be taken: a thousand take some 20 µs of Redis. */
export const SEARCH_LENGTH = 1_000
/** How long the last one is remembered: admission gives this lane a second of work at most. */
const REMEMBERED_MS = 60_000

const moveForward = defineScript('moveForward-2')

/** Gives a waiting job its place in the lane of known devices. No other job is touched. */
export async function bringForward(redis: RedisConnection, prefix: string, jobId: string): Promise<void> {
  const keys = [queueKey(prefix, 'wait'), lastKnownKey(prefix)]
  await moveForward(redis, keys, jobId, SEARCH_LENGTH, REMEMBERED_MS)
}

// Ageing, as in schedulers: each added job promotes the two oldest deferred jobs, which so get at
// least two thirds of the capacity, however many held jobs arrive. Half would do for their tickets,
// but in a spike that workers join the last job would wait a quarter longer (infra/sizing).

/** Deferred jobs that each held one promotes. */
export const PROMOTED_BY_EACH = 2
/** The share of the capacity that deferred jobs get at least. */
export const DEFERRED_SHARE = PROMOTED_BY_EACH / (PROMOTED_BY_EACH + 1)
/** Share of the capacity in a ticket's life that a line may fill; a tenth of it is spare. */
export const LINE_SHARE = 0.9 * DEFERRED_SHARE
/** Tickets that may be absent, for each job that may be outstanding. */
export const ABSENT_SHARE = 0.5

const promoteOldest = defineScript('promoteOldest-2')

/** Promotes the oldest deferred jobs to the held lane, as many as one held job does. */
export async function promoteOldestDeferred(redis: RedisConnection, prefix: string): Promise<void> {
  const keys = [queueKey(prefix, 'prioritized'), queueKey(prefix, 'wait')]
  await promoteOldest(redis, keys, jobKey(prefix), PROMOTED_BY_EACH)
}
