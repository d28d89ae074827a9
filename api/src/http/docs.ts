/** OpenAPI 3.1 generated from the route schemas, at /openapi.json, and Swagger UI at /docs. */
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { shareComponents } from './openapi-components.js'

const SVG = 'image/svg+xml'
/** The pages' files. The description itself, as JSON and YAML, costs as much as a login. */
const FILES = '/docs/static/'

/** The logo: water over a crest. */
const MARK =
  '<path d="M2 22h28v6H2z" fill="#4d7ea8"/><path d="M2 14c5 0 7-6 12-6s6 6 9 9 4 5 7 5v2H2z" fill="#2f9bdb"/>'
const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">${MARK}</svg>`
const logo =
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 176 40" height="40"><g transform="translate(0 4)">${MARK}</g>` +
  '<text x="42" y="29" font-family="system-ui, sans-serif" font-size="26" font-weight="700" fill="#fff">Spillway</text></svg>'

/** What an API is, beside its routes. */
export interface DocsOptions {
  title: string
  description: string
  tags: { name: string; description: string }[]
  securitySchemes: Record<string, { type: 'http'; scheme: 'bearer'; bearerFormat?: string; description?: string }>
}

export const docsPlugin = fp(
  async (app: FastifyInstance, { title, description, tags, securitySchemes }: DocsOptions) => {
    await app.register(swagger, {
      openapi: {
        openapi: '3.1.0',
        info: { title, version: '1', description },
        tags,
        components: { securitySchemes },
      },
      transformObject: (document) =>
        'openapiObject' in document ? shareComponents(document.openapiObject) : document.swaggerObject,
    })
    await app.register(async (pages) => {
      pages.addHook('onRoute', (route) => {
        if (route.url.startsWith(FILES)) route.config = { ...route.config, isLight: true }
      })
      await pages.register(swaggerUi, {
        routePrefix: '/docs',
        logLevel: 'warn',
        logo: { type: SVG, content: logo, href: '/docs', target: '_self' },
        theme: {
          title: `${title} API`,
          favicon: [{ filename: 'spillway.svg', rel: 'icon', type: SVG, sizes: 'any', content: icon }],
        },
      })
    })
    app.get('/openapi.json', { schema: { hide: true }, logLevel: 'warn' }, async () => app.swagger())
  },
  { name: 'docs' },
)
