/** Redis is not trusted, and a connection that lost a reply gives each command another's. */

/** The reply is not one of the command. */
export class UnexpectedReply extends Error {
  override readonly name = 'UnexpectedReply'
}

/** A whole number of 0 or more. Throws {@link UnexpectedReply} for anything else. */
export function toCount(part: unknown): number {
  if (typeof part === 'number' && Number.isSafeInteger(part) && part >= 0) return part
  throw new UnexpectedReply('Redis gave no number where a script returns one')
}

/** A reply as a list. Throws {@link UnexpectedReply} for anything else. */
export function toList(reply: unknown): unknown[] {
  if (Array.isArray(reply)) return reply
  throw new UnexpectedReply('Redis gave no list where a script returns one')
}
