// The command `pnpm seed`: accounts that share one password. A gateway hashes it once, for an account
// whose stored hash is copied to all others.
import { randomUUID } from 'node:crypto'
import { runCommand } from '@spillway/infra/processes/command'
import { parseCommandLine, UserError, whole } from '@spillway/infra/processes/command-line'
import { findRunning, readEnvironment } from '@spillway/infra/start/places'
import type { Database } from '@spillway/prisma'
import { SEED_PASSWORD, SEED_USERS, seedEmail, seedUsers } from '@spillway/prisma/seed'
import { openDatabase, secretIn } from './command.ts'

const help = `pnpm seed [--users N] [--password P]

Makes sure that user-1@example.test to user-N@example.test exist and have the password P.

  --users N      how many accounts [${SEED_USERS}]
  --password P   their password ["${SEED_PASSWORD}"]
  --help         prints this

From the environment, in place of those of a running pnpm start:

  DATABASE_URL   the database
  GATEWAY_URL    a gateway on that database, which has the password hashed
`

const USERS_MOST = 10_000_000

async function seed(args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const { values } = parseCommandLine('pnpm seed', args, {
    users: { type: 'string', default: String(SEED_USERS) },
    password: { type: 'string', default: SEED_PASSWORD },
  })
  if (values.help) return console.log(help)
  const { password } = values
  const users = whole('--users', values.users, { most: USERS_MOST })
  const { databaseUrl, gatewayUrl } = urlsIn(env)
  const startedMs = performance.now()
  const database = openDatabase(databaseUrl)
  try {
    const passwordHash = await hashByGateway(gatewayUrl, database, password)
    const { created, existing } = await seedUsers(database, { users, passwordHash })
    const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1)
    console.log(`Created ${created} accounts, found ${existing}, in ${seconds} s.`)
    console.log(`${seedEmail(1)} to ${seedEmail(users)} have the password "${password}".`)
  } finally {
    await database.$disconnect()
  }
}

function urlsIn(env: NodeJS.ProcessEnv): { databaseUrl: string; gatewayUrl: string } {
  const databaseUrl = secretIn(env, 'DATABASE_URL')
  const { stateDir } = readEnvironment(env)
  const { GATEWAY_URL: gatewayUrl } = env
  if (databaseUrl !== undefined && gatewayUrl) return { databaseUrl, gatewayUrl }
  return findRunning(stateDir, 'set both DATABASE_URL and GATEWAY_URL')
}

/** Registers an account, reads its hash and deletes it. */
async function hashByGateway(gatewayUrl: string, database: Database, password: string): Promise<string> {
  const email = `seed-${randomUUID()}@example.test`
  const response = await fetch(new URL('/v1/users', gatewayUrl), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password }),
  }).catch((cause) => {
    throw new UserError(`No gateway answers at ${gatewayUrl}: start one, or set GATEWAY_URL.`, { cause })
  })
  if (response.status === 202) throw new UserError('The password was not hashed in time: check that a worker runs.')
  if (response.status !== 201) throw new UserError(`The gateway at ${gatewayUrl} refused: ${await response.text()}`)
  const account = await database.user.findUnique({ where: { email } })
  if (!account) throw new UserError(`The gateway at ${gatewayUrl} does not use the database of DATABASE_URL.`)
  await database.user.delete({ where: { email } })
  return account.passwordHash
}

await runCommand(() => seed(process.argv.slice(2), process.env))
