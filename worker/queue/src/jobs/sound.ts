/**
 * Keeps the keys of a queue sound. A writer to Redis can put anything in the place of a number or a key, and BullMQ's scripts and ours would then
 * fail for as long as it stays. So scripts reset what they write, and whoever takes the jobs of a queue removes the rest.
 */

import { throttledWarning, type Warnings } from '@spillway/common/throttled-warning'
import type { RedisConnection } from '../redis/connect.js'
import { defineScript } from '../redis/script.js'
import { toList } from '../redis/unexpected-reply.js'
import { QUEUE_NAME } from '../wire/job.js'
import { jobKey, type QueuePart, queueKey, queueParts } from './keys.js'

/**
 * Lua functions for numbers that are stored. `keep_only` deletes a key of another type. `to_count` returns 0 for a text that is not a whole
 * number above 0, or has more digits than Lua keeps. A key that is not there is never deleted: a DEL would let the script write to a full
 * Redis (REPLY in wire/reply.ts).
 */
export const LUA_SOUND = `
local function keep_only(kind, key)
  local found = redis.call('TYPE', key).ok
  if found ~= kind and found ~= 'none' then redis.call('DEL', key) end
end
local function to_count(text)
  return type(text) == 'string' and #text <= 15 and string.find(text, '^[1-9]%d*$') and tonumber(text) or 0
end`

const parts = Object.keys(queueParts).filter((part): part is QueuePart => part in queueParts)

/** Jobs in hand whose locks are looked at. */
const LOCKS = 1_000
/** Longer than any lock or turn of BullMQ's lasts. */
const LOCK_MOST_MS = 60_000
/** Entries of BullMQ's stream of events that somebody may have it keep. */
const EVENTS_MOST = 100_000
const INTERVAL_MS = 1_000

/**
 * Lua: removes what BullMQ cannot have written, and its scripts would fail at or wait for.
 * KEYS: as in queueParts. ARGV: a type for each, then the prefix of job keys, locks to look at, the longest life of a lock, and the most
 * events. Returns the names of what was removed.
 *
 * Without an end, `stalled-check` stops the recovery of jobs whose workers died, and a lock the recovery of its job. After an event with the
 * highest id, no other can be added.
 */
const removeUnsound = defineScript(`${LUA_SOUND}
local prefix, locks, lock_most, events_most = unpack(ARGV, #KEYS + 1)
local _, _, active, _, _, _, _, _, meta, id, pc, limiter, check, events = unpack(KEYS)
local removed = {}
local function remove(key)
  redis.call('DEL', key)
  removed[#removed + 1] = key
end
for n, key in ipairs(KEYS) do
  local found = redis.call('TYPE', key).ok
  if found ~= ARGV[n] and found ~= 'none' then remove(key) end
end
for _, key in ipairs({id, pc, limiter}) do
  local text = redis.call('GET', key)
  if text and text ~= '0' and to_count(text) == 0 then remove(key) end
end
local function is_endless(key)
  local left = redis.call('PTTL', key)
  return left == -1 or left > tonumber(lock_most)
end
if is_endless(check) then remove(check) end
for _, job in ipairs(redis.call('LRANGE', active, 0, locks - 1)) do
  local lock = prefix .. job .. ':lock'
  if is_endless(lock) then remove(lock) end
end
local function remove_field(field)
  redis.call('HDEL', meta, field)
  removed[#removed + 1] = meta .. ' ' .. field
end
local paused, concurrency, max, duration, kept = unpack(redis.call('HMGET', meta, 'paused', 'concurrency', 'max', 'duration', 'opts.maxLenEvents'))
if paused and paused ~= '1' then remove_field('paused') end
if concurrency and to_count(concurrency) == 0 then remove_field('concurrency') end
if max and (to_count(max) == 0 or to_count(duration) == 0) then remove_field('max') end
if duration and to_count(duration) == 0 then remove_field('duration') end
if kept and (to_count(kept) == 0 or to_count(kept) > tonumber(events_most)) then remove_field('opts.maxLenEvents') end
if redis.call('EXISTS', events) == 1 then
  local facts = redis.call('XINFO', 'STREAM', events)
  for n = 1, #facts, 2 do
    if facts[n] == 'last-generated-id' then
      local ms = tonumber(string.match(facts[n + 1], '^%d+'))
      if ms > redis.call('TIME')[1] * 1000 + 86400000 then remove(events) end
    end
  end
end
return removed`)

/** Removes what BullMQ cannot have written from the keys of a queue, once a second until it is closed. */
export class SoundQueue {
  readonly #timer: NodeJS.Timeout

  constructor(options: { redis: RedisConnection; prefix: string; name?: string; log: Warnings }) {
    const { redis, prefix, name = QUEUE_NAME, log } = options
    const keys = parts.map((part) => queueKey(prefix, part, name))
    const args = [...parts.map((part) => queueParts[part]), jobKey(prefix, '', name), LOCKS, LOCK_MOST_MS, EVENTS_MOST]
    const found = throttledWarning(log, 'wrong values in Redis were removed')
    const look = async (): Promise<void> => {
      if (redis.status !== 'ready') return
      const removed = toList(await removeUnsound(redis, keys, ...args))
      if (removed.length > 0) found.warn(new Error(removed.join(', ')), { times: removed.length })
    }
    this.#timer = setInterval(() => void look().catch(() => undefined), INTERVAL_MS)
    this.#timer.unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }
}
