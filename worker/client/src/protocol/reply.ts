/**
 * The wire, part two: how a verdict comes back. The worker stores it under a key that lives as long as its ticket could be
 * redeemed, and tells the waiting gateway on that gateway's own channel. The message is a courtesy and may be lost; the key
 * is what counts.
 */
import type { JobName } from './job.js'
import type { SealContext } from './seal.js'

/** What identifies a job at both ends and binds its seals. `deadline` is epoch milliseconds by Redis's clock. */
export interface JobRef {
  id: string
  name: JobName
  deadline: number
}

/** Where the sealed verdict of a job is kept until its deadline. */
export function verdictKey(prefix: string, jobId: string): string {
  return `${prefix}:verdict:${jobId}`
}

/** Which gateway waits for the verdict of a job that another one added: its `replyTo`. */
export function redeemerKey(prefix: string, jobId: string): string {
  return `${prefix}:redeemer:${jobId}`
}

/**
 * Lua: stores a verdict and announces it to the gateway that added the job and to the one that waits for it with a ticket.
 * KEYS: verdict, redeemer. ARGV: sealed verdict, milliseconds to keep it, start of every reply channel's name, replyTo, the
 * job's id. The message is the id, a space, the sealed verdict. The verdict is stored before it is announced, and what is never
 * heard is found.
 *
 * DEL comes first for a Redis that is full: it refuses a script's first write when that could need memory, as SET could, and
 * none after that. BullMQ's script that a job is done begins with a DEL too, so without this jobs would end whose verdicts
 * nobody has. What a full Redis takes beyond its limit is small: under a kilobyte, until the deadline, for each job that it
 * took while it had room. Nothing is lost by it: what stood there would be overwritten, and no reader comes in between.
 *
 * No error may come after the message: it would be sent again and again. A redeemer's key of another type is none.
 */
export const REPLY = `
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
local message = ARGV[5] .. ' ' .. ARGV[1]
redis.call('PUBLISH', ARGV[3] .. ARGV[4], message)
local redeemer = redis.pcall('GET', KEYS[2])
if type(redeemer) == 'string' and redeemer ~= ARGV[4] then redis.call('PUBLISH', ARGV[3] .. redeemer, message) end
return 1`

/** The channel of one gateway process. */
export function replyChannel(prefix: string, replyTo: string): string {
  return `${prefix}:replies:${replyTo}`
}

/** Takes the message on a reply channel apart; undefined for what is no reply. */
export function decodeReply(message: string): { jobId: string; sealed: string } | undefined {
  const space = message.indexOf(' ')
  if (space <= 0) return undefined
  return { jobId: message.slice(0, space), sealed: message.slice(space + 1) }
}

/** What the request of a job is bound to. */
export function requestSeal(job: JobRef): SealContext {
  return { purpose: 'request', id: job.id, bind: [job.name, job.deadline] }
}

/** What the verdict of a job is bound to: the same, in the other direction. */
export function verdictSeal(job: JobRef): SealContext {
  return { purpose: 'verdict', id: job.id, bind: [job.name, job.deadline] }
}

/** What word that a job's ticket has been redeemed is bound to, which then stands in the verdict's place. Gateways alone seal it. */
export function usedSeal(job: JobRef): SealContext {
  return { purpose: 'used', id: job.id, bind: [job.name, job.deadline] }
}
