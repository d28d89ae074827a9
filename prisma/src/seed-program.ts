// Seeds accounts that share one password. A gateway hashes it once, by registering an account whose stored hash is copied to all others.
// `pnpm seed` sets the two URLs to those of a running `pnpm start`.
import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import { connectDatabase, type Database } from './index.js'
import { SEED_PASSWORD, SEED_USERS, seedEmail, seedUsers } from './seed.js'

const usage = `pnpm seed [--users N] [--password P]

Makes sure that user-1@example.test to user-N@example.test exist and have the password P.

  --users N      how many accounts [${SEED_USERS}]
  --password P   their password ["${SEED_PASSWORD}"]

From the environment, in place of those of a running pnpm start:

  DATABASE_URL   the database
  GATEWAY_URL    a gateway on that database, which has the password hashed
`

async function main(args: string[], env: NodeJS.ProcessEnv): Promise<void> {
  const options = {
    users: { type: 'string', default: String(SEED_USERS) },
    password: { type: 'string', default: SEED_PASSWORD },
    help: { type: 'boolean', short: 'h' },
  } as const
  const { values } = parseArgs({ args, options })
  if (values.help) return console.log(usage)
  const users = Number(values.users)
  if (!/^\d+$/.test(values.users) || users < 1 || users > 10_000_000) {
    throw new Error(`--users takes a whole number from 1 to 10000000, not "${values.users}".`)
  }
  const { DATABASE_URL: databaseUrl, GATEWAY_URL: gatewayUrl } = env
  if (!databaseUrl || !gatewayUrl) throw new Error('Set DATABASE_URL and GATEWAY_URL, or use pnpm seed.')

  const startedMs = performance.now()
  const database = connectDatabase({ url: databaseUrl, poolSize: 1, statementTimeoutMs: 60_000 })
  try {
    const passwordHash = await hashByGateway(gatewayUrl, database, values.password)
    const { created, existing } = await seedUsers(database, { users, passwordHash })
    const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1)
    console.log(`Created ${created} accounts, found ${existing}, in ${seconds} s.`)
    console.log(`${seedEmail(1)} to ${seedEmail(users)} have the password "${values.password}".`)
  } finally {
    await database.$disconnect()
  }
}

/** Registers an account, reads its hash and deletes it. */
async function hashByGateway(gatewayUrl: string, database: Database, password: string): Promise<string> {
  const email = `seed-${randomUUID()}@example.test`
  const response = await fetch(new URL('/v1/users', gatewayUrl), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password }),
  }).catch((cause) => {
    throw new Error(`No gateway answers at ${gatewayUrl}: start one, or set GATEWAY_URL.`, { cause })
  })
  if (response.status === 202) throw new Error('The password was not hashed in time: check that a worker runs.')
  if (response.status !== 201) throw new Error(`The gateway at ${gatewayUrl} refused: ${await response.text()}`)
  const account = await database.user.findUnique({ where: { email } })
  if (!account) throw new Error(`The gateway at ${gatewayUrl} does not use the database of DATABASE_URL.`)
  await database.user.delete({ where: { email } })
  return account.passwordHash
}

await main(process.argv.slice(2), process.env).catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
})
