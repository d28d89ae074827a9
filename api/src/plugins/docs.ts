/** The API described: OpenAPI 3.1 from the route schemas, at /openapi.json, and to read and try at /docs. */
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

export const docsPlugin = fp(
  async (app: FastifyInstance) => {
    await app.register(swagger, {
      openapi: {
        openapi: '3.1.0',
        info: {
          title: 'Spillway',
          version: '1',
          description:
            'Accounts and logins that survive the spike. A request whose hash takes longer than it is held is answered ' +
            'with 202 and a ticket; errors are RFC 9457 problems with a stable code.',
        },
        components: { securitySchemes: { accessToken: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } } },
      },
    })
    await app.register(swaggerUi, { routePrefix: '/docs', logLevel: 'warn' })
    app.get('/openapi.json', { schema: { hide: true }, logLevel: 'warn' }, async () => app.swagger())
  },
  { name: 'docs' },
)
