/** Documents that are the same for everybody, answered from memory and kept by caches. */
import type { FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify'

export interface Document {
  text: string
  etag: string
}

/**
 * Options and handler of a route that answers with a document. A client that has it gets 304.
 * Answers are not logged, because anybody can ask at any rate.
 *
 * @param mayAsk hooks that run first
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

/** Compares weakly (RFC 9110, 13.1.2): a proxy that compresses makes a strong tag weak. */
function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.split(',').some((tag) => opaque(tag) === opaque(etag))
}

function opaque(tag: string): string {
  return tag.trim().replace(/^W\//, '')
}
