// Express: users register and log in. They are kept in memory, and in users.json for the next
// start.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import bcrypt from '@spillway/client/bcrypt'
import express from 'express'

const COST = 10
/**
 * Compared with where there is no such user, so that the answer takes as long: the hash of a
 * password that nobody knows.
 */
const NOBODY = '$2b$10$7Lc.1wffkuXCcWWjTdA88eWkHb2P9eWpd/TWn2jtzmfrQQ6WU6L62'

/** Hashes of passwords by e-mail address. */
const users = new Map(existsSync('users.json') ? JSON.parse(readFileSync('users.json', 'utf8')) : [])

const app = express()
app.use(express.json())

app.post('/users', async (req, res) => {
  const { email, password } = req.body
  const hash = await bcrypt.hash(password, COST)
  if (users.has(email)) return res.sendStatus(409)
  users.set(email, hash)
  writeFileSync('users.json', JSON.stringify([...users]))
  res.sendStatus(201)
})

app.post('/login', async (req, res) => {
  const { email, password } = req.body
  const isRight = await bcrypt.compare(password, users.get(email) ?? NOBODY)
  res.sendStatus(isRight ? 200 : 401)
})

app.listen(process.env.PORT ?? 3000)
