/** Documents that are the same for everybody: answered from memory, and kept by caches. */
import type { FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify'

export interface Document {
  text: string
  etag: string
}

/**
 * Options and handler of a route that answers with a document. Who has it gets 304 first. No answer
 * is logged, because anybody can ask at any rate.
 *
 * @param mayAsk hooks that come before
 */
export function documentRoute(read: () => Document, maxAgeS: number, mayAsk: onRequestAsyncHookHandler[] = []) {
  async function answerWhoHasIt({ headers }: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
    const { etag } = read()
    reply.headers({ 'cache-control': `public, max-age=${maxAgeS}`, etag })
    return isKnown(headers['if-none-match'], etag) ? reply.code(304).send() : undefined
  }
  const onRequest: onRequestAsyncHookHandler[] = [...mayAsk, answerWhoHasIt]
  return {
    config: { priority: 'always' as const },
    logLevel: 'warn' as const,
    onRequest,
    handler: async (_request: FastifyRequest, reply: FastifyReply) =>
      reply.type('application/json; charset=utf-8').send(read().text),
  }
}

/** Compared weakly (RFC 9110, 13.1.2): a proxy that compresses makes a tag a weak one. */
function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.split(',').some((tag) => opaque(tag) === opaque(etag))
}

function opaque(tag: string): string {
  return tag.trim().replace(/^W\//, '')
}
