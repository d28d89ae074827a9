// Better Auth, mounted in Express: users sign up and sign in below /api/auth.
import { stat } from 'node:fs/promises'
import { toNodeHandler } from 'better-auth/node'
import express from 'express'
import { auth } from './auth.js'

const app = express()
app.all('/api/auth/*splat', toNodeHandler(auth))

app.get('/file', async (_req, res) => {
  const { size } = await stat('package.json')
  res.json({ size })
})

app.get('/time', (_req, res) => {
  res.json({ now: Date.now() })
})

app.listen(process.env.PORT ?? 3000)
