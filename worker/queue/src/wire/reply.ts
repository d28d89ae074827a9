/**
 * The wire, part two: replies. The worker stores a result until its job's deadline, and announces
 * it on the channel of the waiting gateway. The message may be lost; the stored result stays.
 */
import type { JobName } from './job.js'
import type { SealContext } from './seal.js'

/**
 * Identifies a job at both ends; its seals are bound to its id, name and deadline, in epoch
 * milliseconds by Redis's clock.
 */
export interface JobRef {
  id: string
  name: JobName
  deadline: number
}

/** The later reply with a match's new hash: a `hashed` result with a binding of its own. */
export function upgradeOf(job: JobRef): JobRef {
  return { ...job, id: `${job.id}.upgrade` }
}

export function resultKey(prefix: string, jobId: string): string {
  return `${prefix}:result:${jobId}`
}

/** The key of a present client; its value: the `replyTo` of the gateway that it last reached. */
export function presentKey(prefix: string, jobId: string): string {
  return `${prefix}:present:${jobId}`
}

export function replyChannel(prefix: string, replyTo: string): string {
  return `${prefix}:replies:${replyTo}`
}

/** The announcement of a skipped job, in place of a result: its client can start it again. */
export const SKIPPED = ''

/** A message of a reply channel. Neither part has a blank. */
export function encodeReply(jobId: string, sealed: string): string {
  return `${jobId} ${sealed}`
}

export function decodeReply(message: string): { jobId: string; sealed: string } {
  const [jobId = '', sealed = ''] = message.split(' ')
  return { jobId, sealed }
}

export function requestSeal(job: JobRef): SealContext {
  return { purpose: 'request', id: job.id, bind: [job.name, job.deadline] }
}

/** The seal context of a job's result: the same bindings, in the other direction. */
export function resultSeal(job: JobRef): SealContext {
  return { purpose: 'result', id: job.id, bind: [job.name, job.deadline] }
}
