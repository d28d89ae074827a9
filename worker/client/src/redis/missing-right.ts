/** Says which right a user of Redis lacks, and the rule that has all of them. */
import { Redis } from 'ioredis'

/**
 * What the user of gateways, workers and applications may do (`ACL SETUSER`), with the QUEUE_PREFIX where that is another. BullMQ and ioredis
 * need `info`, which belongs to the dangerous commands.
 */
export const ACL_RULE = '~{spillway}* &{spillway}* +@all -@admin -@dangerous +info'

/** What Redis is asked without relying on it; see eviction.ts. */
const OPTIONAL = ['config']

/** An event of a connection, with the error. */
export const MISSING_RIGHT = 'missing right'

/**
 * Has every error that Redis answers for want of a right say so in one sentence, with the command and {@link ACL_RULE}. Redis's own message
 * names the command in some versions alone, and makes ioredis print a link to its wiki and go on. Once for the process.
 */
export function explainMissingRights(): void {
  const { handleReconnection } = Redis.prototype
  Redis.prototype.handleReconnection = function (error, item) {
    const sentence = sentenceOf(error.message, item.command.name)
    if (sentence !== undefined) {
      error.message = sentence
      this.emit(MISSING_RIGHT, error)
    }
    handleReconnection.call(this, error, item)
  }
}

function sentenceOf(message: string, sent: string): string | undefined {
  if (!/^NOPERM |ACL failure in script/.test(message) || OPTIONAL.includes(sent)) return undefined
  const command = /'([\w|-]+)' command/.exec(message)?.[1] ?? sent
  const does = /channel/.test(message) ? 'use the channel of' : /key/.test(message) ? 'use a key of' : 'run'
  return `The user of Redis may not ${does} "${command.toLowerCase()}": give it the rule ${ACL_RULE}, with the QUEUE_PREFIX in place of {spillway}`
}
