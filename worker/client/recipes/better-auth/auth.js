// Better Auth without a database: its tables are kept in memory, and in users.json for the next
// start.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createPasswords } from '@spillway/client'
import { betterAuth } from 'better-auth'
import { memoryAdapter } from 'better-auth/adapters/memory'

const passwords = createPasswords()
const empty = { user: [], account: [], session: [], verification: [] }
const tables = existsSync('users.json') ? { ...empty, ...JSON.parse(readFileSync('users.json', 'utf8')) } : empty

export const auth = betterAuth({
  database: memoryAdapter(tables),
  emailAndPassword: {
    enabled: true,
    password: {
      hash: (password) => passwords.hash(password),
      verify: ({ password, hash }) => passwords.verify(password, hash),
    },
  },
  databaseHooks: {
    account: {
      create: {
        async after() {
          const { user, account } = tables
          writeFileSync('users.json', JSON.stringify({ user, account }))
        },
      },
    },
  },
  // Better Auth allows an address three logins in ten seconds: too few to try this out.
  rateLimit: { enabled: false },
})
