// Users, kept in memory, and in users.json for the next start.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import bcrypt from '@spillway/client/bcrypt'

const COST = 10
/**
 * Compared with where there is no such user, so that the answer takes as long: the hash of a
 * password that nobody knows.
 */
const NOBODY = '$2b$10$7Lc.1wffkuXCcWWjTdA88eWkHb2P9eWpd/TWn2jtzmfrQQ6WU6L62'

// Routes are bundled apart from each other: only globalThis is one for all.
globalThis.users ??= new Map(existsSync('users.json') ? JSON.parse(readFileSync('users.json', 'utf8')) : [])
/** Hashes of passwords by e-mail address. */
const { users } = globalThis

/** Whether there was no such user before. */
export async function register(email, password) {
  const hash = await bcrypt.hash(password, COST)
  if (users.has(email)) return false
  users.set(email, hash)
  writeFileSync('users.json', JSON.stringify([...users]))
  return true
}

export function isRight(email, password) {
  return bcrypt.compare(password, users.get(email) ?? NOBODY)
}
