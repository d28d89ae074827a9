/** The API described: OpenAPI 3.1 from the route schemas, at /openapi.json, and to read and try at /docs. */
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { icon, logo } from './logo.js'
import { shareComponents } from './openapi-components.js'

const SVG = 'image/svg+xml'

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
        tags: [
          { name: 'Accounts', description: 'Registration and the signed-in user' },
          { name: 'Sessions', description: 'Logging in and out, tokens, and the keys they are verified with' },
          { name: 'Tickets', description: 'Answers that came later' },
          { name: 'Probes', description: 'For balancers and orchestrators' },
        ],
        components: { securitySchemes: { accessToken: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } } },
      },
      transformObject: (document) =>
        'openapiObject' in document ? shareComponents(document.openapiObject) : document.swaggerObject,
    })
    await app.register(swaggerUi, {
      routePrefix: '/docs',
      logLevel: 'warn',
      logo: { type: SVG, content: logo, href: '/docs', target: '_self' },
      theme: {
        title: 'Spillway API',
        favicon: [{ filename: 'spillway.svg', rel: 'icon', type: SVG, sizes: 'any', content: icon }],
      },
    })
    app.get('/openapi.json', { schema: { hide: true }, logLevel: 'warn' }, async () => app.swagger())
  },
  { name: 'docs' },
)
