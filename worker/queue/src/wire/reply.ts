/**
 * The wire, part two: replies. The worker stores a verdict until its job's deadline, and announces
 * it on the channel of the waiting gateway. The message may be lost; the stored verdict holds.
 */
import type { JobName } from './job.js'
import type { SealContext } from './seal.js'

/**
 * Identifies a job at both ends; its seals are bound to its id, name and deadline, in epoch
 * milliseconds by Redis's clock. `server` is the id of the Redis that has it, where there are
 * several; undefined for the first.
 */
export interface JobRef {
  id: string
  name: JobName
  deadline: number
  server?: string | undefined
}

/** The later reply with a match's new hash: a `hashed` verdict with a binding of its own. */
export function upgradeOf(job: JobRef): JobRef {
  return { ...job, id: `${job.id}.upgrade` }
}

export function verdictKey(prefix: string, jobId: string): string {
  return `${prefix}:verdict:${jobId}`
}

/** Key of a ticket's present client: the `replyTo` of the gateway of its last request. */
export function presentKey(prefix: string, jobId: string): string {
  return `${prefix}:present:${jobId}`
}

export function replyChannel(prefix: string, replyTo: string): string {
  return `${prefix}:replies:${replyTo}`
}

/** Parses a message of a reply channel; undefined for any other text. */
export function decodeReply(message: string): { jobId: string; sealed: string } | undefined {
  const space = message.indexOf(' ')
  if (space <= 0) return undefined
  return { jobId: message.slice(0, space), sealed: message.slice(space + 1) }
}

export function requestSeal(job: JobRef): SealContext {
  return { purpose: 'request', id: job.id, bind: [job.name, job.deadline] }
}

/** The seal context of a job's verdict: the same bindings, in the other direction. */
export function verdictSeal(job: JobRef): SealContext {
  return { purpose: 'verdict', id: job.id, bind: [job.name, job.deadline] }
}
