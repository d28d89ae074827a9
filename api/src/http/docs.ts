/** OpenAPI 3.1 generated from the route schemas, at /openapi.json, and Swagger UI at /docs. */
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

const SVG = 'image/svg+xml'
/** The logo: water over a crest. */
const MARK =
  '<path d="M2 22h28v6H2z" fill="#4d7ea8"/><path d="M2 14c5 0 7-6 12-6s6 6 9 9 4 5 7 5v2H2z" fill="#2f9bdb"/>'
const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">${MARK}</svg>`
const logo =
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 176 40" height="40"><g transform="translate(0 4)">${MARK}</g>` +
  '<text x="42" y="29" font-family="system-ui, sans-serif" font-size="26" font-weight="700" fill="#fff">Spillway</text></svg>'

/** The page of Swagger UI has no viewport: phones would show it as 980 pixels wide. */
const VIEWPORT =
  "document.head.append(Object.assign(document.createElement('meta'), { name: 'viewport', content: 'width=device-width, initial-scale=1' }))"

export interface DocsOptions {
  title: string
  description: string
  tags: { name: string; description: string }[]
  securitySchemes: Record<
    string,
    { type: 'http'; scheme: 'bearer' | 'basic'; bearerFormat?: string; description?: string }
  >
}

export const docsPlugin = fp(
  async (app: FastifyInstance, { title, description, tags, securitySchemes }: DocsOptions) => {
    await app.register(swagger, {
      openapi: { openapi: '3.1.0', info: { title, version: '1', description }, tags, components: { securitySchemes } },
      transformObject: (document) =>
        'openapiObject' in document ? shareComponents(document.openapiObject) : document.swaggerObject,
    })
    await app.register(async (pages) => {
      await pages.register(swaggerUi, {
        routePrefix: '/docs',
        logLevel: 'warn',
        logo: { type: SVG, content: logo, href: '/docs', target: '_self' },
        theme: {
          title: `${title} API`,
          js: [{ filename: 'viewport.js', content: VIEWPORT }],
          favicon: [{ filename: 'spillway.svg', rel: 'icon', type: SVG, sizes: 'any', content: icon }],
        },
      })
    })
    app.get('/openapi.json', { schema: { hide: true }, logLevel: 'warn' }, async () => app.swagger())
  },
  { name: 'docs' },
)

// Moves titled schemas of an OpenAPI document to its components, so that each appears once.

type Json = Record<string, unknown>

/**
 * Replaces each object schema that has a `title` by a reference to `components.schemas`. Routes
 * keep whole schemas, because their types are derived from them. Throws when two schemas have the
 * same title.
 */
function shareComponents<Document extends { paths?: unknown; components?: object }>(document: Document): Document {
  const schemas: Record<string, Json> = {}

  function share(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(share)
    if (!isObject(value)) return value
    const shared = Object.fromEntries(
      // Examples are values, even if they look like schemas.
      Object.entries(value).map(([name, part]) => [name, name === 'examples' ? part : share(part)]),
    )
    const { title, type, responses } = shared
    if (isObject(responses)) for (const answer of Object.values(responses)) addRequestId(answer)
    if (typeof title !== 'string' || type !== 'object') return shared
    schemas[title] ??= shared
    if (JSON.stringify(schemas[title]) !== JSON.stringify(shared)) throw new Error(`two schemas are titled ${title}`)
    return { $ref: `#/components/schemas/${title}` }
  }

  const paths = share(document.paths)
  return { ...document, paths, components: { ...document.components, schemas } }
}

function addRequestId(answer: unknown): void {
  if (!isObject(answer)) return
  const description = 'By which support finds what became of the request'
  answer.headers = { ...Object(answer.headers), 'X-Request-Id': { schema: { type: 'string' }, description } }
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null
}

export const publicDocs: DocsOptions = {
  title: 'Spillway',
  description:
    'Accounts and logins that survive the spike. If the hash takes longer than a request is held, the answer is 202 with a ' +
    'ticket. Errors are RFC 9457 problems with a stable code.',
  tags: [
    { name: 'Accounts', description: 'Registration and the signed-in user' },
    { name: 'Sessions', description: 'Logging in and out, tokens, and the keys that verify them' },
    { name: 'Tickets', description: 'Tickets for answers that take longer' },
    { name: 'Probes', description: 'Probes for load balancers and orchestrators' },
  ],
  securitySchemes: { accessToken: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
}

export const operatorDocs: DocsOptions = {
  title: 'Spillway operators',
  description:
    'Lets operators read and change state. Each change needs a reason, and is recorded in the audit with the name of the operator.',
  tags: [
    { name: 'Accounts', description: 'The state of an account, and changes to it' },
    { name: 'Networks', description: 'Networks whose requests are refused' },
    { name: 'Jobs', description: 'The password job of a request' },
  ],
  securitySchemes: { operator: { type: 'http', scheme: 'basic' } },
}

export const serviceDocs: DocsOptions = {
  title: 'Spillway service',
  description:
    'Verifies and hashes passwords for applications that keep their own users, and tells other services whether access tokens are valid. If the hash takes longer than a request is held, ' +
    'the answer is 202 with a ticket. Errors are RFC 9457 problems with a stable code.',
  tags: [
    { name: 'Passwords', description: 'Verifying and hashing' },
    { name: 'Tokens', description: 'Whether an access token of a user is valid' },
    { name: 'Tickets', description: 'Tickets for answers that take longer' },
  ],
  securitySchemes: {
    serviceKey: { type: 'http', scheme: 'bearer', description: 'A key from SERVICE_KEYS, without its name' },
  },
}
