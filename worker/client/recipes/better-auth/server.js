// Better Auth, mounted in Express: users sign up and sign in below /api/auth.
import { toNodeHandler } from 'better-auth/node'
import express from 'express'
import { auth } from './auth.js'

const app = express()
app.all('/api/auth/*splat', toNodeHandler(auth))

app.listen(process.env.PORT ?? 3000)
