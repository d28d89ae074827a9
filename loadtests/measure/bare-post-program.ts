// A program of its own: what a POST with a validated body costs in Fastify, where nothing else is done; and what it costs where its answer
// is held as a gateway holds its own.
import { createRefusalPace, REFUSED_AT_ONCE_MS } from '@spillway/client/passwords/refusal-pace'
import { fastify } from 'fastify'

const Body = {
  type: 'object',
  properties: { ticket: { type: 'string', maxLength: 1_024 } },
  required: ['ticket'],
  additionalProperties: false,
} as const

const whenDue = createRefusalPace({ perSecond: () => 0, leastDelayMs: 0, burstMs: REFUSED_AT_ONCE_MS })

const app = fastify()
app.post('/', { schema: { body: Body } }, async (_, reply) => reply.code(401).send({ status: 401, code: 'unknown' }))
app.post('/held', { schema: { body: Body } }, (_, reply) => {
  whenDue(() => void reply.code(401).send({ status: 401, code: 'unknown' }))
})
console.log(JSON.stringify({ msg: 'listening', url: await app.listen({ host: '127.0.0.1', port: 0 }) }))
