/**
 * How services verify access tokens: the public keys (RFC 7517) and, where ISSUER is a URL, the
 * discovery documents (RFC 8414, OpenID Connect Discovery 1.0).
 */

import { createHash } from 'node:crypto'
import { objectOf } from '@spillway/queue/wire/object-schema'
import { type Document, documentRoute } from '../http/documents.js'
import type { RoutePlugin } from '../servers.js'
import { algorithms, claimsOf } from './access-tokens.js'

/** How long a cache may keep the keys, in seconds. Publish a key for longer before it signs. */
const MAX_AGE_S = 300

const text = { type: 'string' } as const
const KeySet = {
  title: 'KeySet',
  description: 'The public keys of access tokens (RFC 7517)',
  ...objectOf({
    keys: {
      type: 'array',
      items: {
        title: 'PublicKey',
        ...objectOf(
          { kty: text, kid: text, use: { const: 'sig' }, alg: { enum: algorithms } },
          { crv: text, x: text, y: text, n: text, e: text },
        ),
      },
    },
  }),
} as const

const Metadata = {
  title: 'Metadata',
  description: 'The metadata for verifying access tokens (RFC 8414)',
  ...objectOf({
    issuer: text,
    jwks_uri: text,
    id_token_signing_alg_values_supported: {
      type: 'array',
      items: { enum: algorithms },
      description: 'The algorithms of access tokens: verifiers read them from this field',
    },
    claims_supported: { type: 'array', items: text },
  }),
} as const

const notModified = { 304: { type: 'null', description: 'The document has not changed' } } as const

export const discoveryRoutes: RoutePlugin = async (app, { keys, issuer, tokenClaims, log }) => {
  const keySet = { tags: ['Sessions'], summary: 'Get the public keys', response: { 200: KeySet, ...notModified } }
  const keysRoute = documentRoute(
    documentOf(() => keys.jwks),
    MAX_AGE_S,
  )
  app.get('/.well-known/jwks.json', { ...keysRoute, schema: { operationId: 'getKeys', ...keySet } })
  if (!issuer.includes('://')) {
    log.info(`there is no discovery of ${issuer}: ISSUER is no URL`)
    return
  }

  const metadata = documentOf(() => ({
    issuer,
    jwks_uri: `${issuer}/.well-known/jwks.json`,
    id_token_signing_alg_values_supported: [...new Set(keys.jwks.keys.map(({ alg }) => alg))],
    claims_supported: claimsOf(tokenClaims),
  }))
  const metadataRoute = documentRoute(metadata, MAX_AGE_S)
  const response = { 200: Metadata, ...notModified }
  const documents = { 'openid-configuration': 'getOpenIdConfiguration', 'oauth-authorization-server': 'getMetadata' }
  for (const [name, operationId] of Object.entries(documents)) {
    const schema = { operationId, tags: ['Sessions'], summary: 'Get the discovery document', response }
    app.get(`/.well-known/${name}`, { ...metadataRoute, schema })
  }
  // OpenID Connect appends to the path of an issuer, and RFC 8414 inserts before it. A proxy may
  // strip the path.
  const { pathname: path } = new URL(issuer)
  if (path === '/') return
  const schema = { hide: true }
  for (const name of Object.keys(documents))
    for (const url of [`/.well-known/${name}${path}`, `${path}/.well-known/${name}`])
      app.get(url, { ...metadataRoute, schema })
  app.get(`${path}/.well-known/jwks.json`, { ...keysRoute, schema })
}

/** A document that changes only with the keys. */
function documentOf(read: () => object): () => Document {
  let document: Document = { text: '', etag: '' }
  return () => {
    const text = JSON.stringify(read())
    if (text !== document.text) document = { text, etag: `"${createHash('sha256').update(text).digest('base64url')}"` }
    return document
  }
}
