// A service that verifies access tokens by their issuer alone, with jose.
import { createServer } from 'node:http'
import { createRemoteJWKSet, jwtVerify } from 'jose'

const { ISSUER: issuer, AUDIENCE: audience = 'spillway', PORT = '8081' } = process.env
const metadata = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json()
if (metadata.issuer !== issuer) throw new Error(`${issuer} says that it is ${metadata.issuer}`)
const keys = createRemoteJWKSet(new URL(metadata.jwks_uri))
const algorithms = metadata.id_token_signing_alg_values_supported

const server = createServer(async ({ headers }, response) => {
  const [, token = ''] = /^Bearer (.+)$/i.exec(headers.authorization ?? '') ?? []
  try {
    const requiredClaims = ['exp', 'sub']
    const { payload } = await jwtVerify(token, keys, { issuer, audience, algorithms, requiredClaims })
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ user: payload.sub }))
  } catch {
    response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
  }
})
server.listen(Number(PORT), '127.0.0.1')
