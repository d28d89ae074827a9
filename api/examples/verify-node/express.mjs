// A service that verifies access tokens by their issuer alone, with express-oauth2-jwt-bearer.
import express from 'express'
import { auth } from 'express-oauth2-jwt-bearer'

const { ISSUER: issuerBaseURL, AUDIENCE: audience = 'spillway', PORT = '8081' } = process.env
const app = express()
app.get('/', auth({ issuerBaseURL, audience }), ({ auth: { payload } }, response) => {
  response.json({ user: payload.sub })
})
// Express would show the reason, and a trace.
app.use((error, _request, response, _next) => {
  response
    .status(error.status ?? 500)
    .set(error.headers ?? {})
    .end()
})
app.listen(Number(PORT), '127.0.0.1')
