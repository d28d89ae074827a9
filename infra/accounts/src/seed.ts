// The command `pnpm seed`: accounts that share one password. A gateway hashes it once, for an account
// whose stored hash is copied to all others.
import { randomUUID } from 'node:crypto'
import { runCommand } from '@spillway/infra/processes/command'
import { parseCommandLine, UserError, whole } from '@spillway/infra/processes/command-line'
import { createAccounts, emailOf, query, seeded } from '@spillway/infra/services/query'
import { findRunning, readEnvironment } from '@spillway/infra/start/places'
import { secretIn } from './command.ts'

const help = `pnpm seed [--users N] [--password P]

Makes sure that user-1@example.test to user-N@example.test exist and have the password P.

  --users N      how many accounts [${seeded.count}]
  --password P   their password ["${seeded.password}"]
  --help         prints this

From the environment, in place of those of a running pnpm start:

  DATABASE_URL   the database
  GATEWAY_URL    a gateway on that database, which has the password hashed
`

const USERS_MOST = 10_000_000

async function seed(args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const { values } = parseCommandLine('pnpm seed', args, {
    users: { type: 'string', default: String(seeded.count) },
    password: { type: 'string', default: seeded.password },
  })
  if (values.help) return console.log(help)
  const { password } = values
  const users = whole('--users', values.users, { most: USERS_MOST })
  const { databaseUrl, gatewayUrl } = urlsIn(env)
  const startedMs = performance.now()
  const passwordHash = await hashByGateway(gatewayUrl, databaseUrl, password)
  const created = await createAccounts(databaseUrl, seeded.name, users, passwordHash)
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1)
  const [first, last] = [emailOf(seeded.name, 1), emailOf(seeded.name, users)]
  console.log(`Created ${created} accounts, found ${users - created}, in ${seconds} s.`)
  console.log(`${first} to ${last} have the password "${password}".`)
}

function urlsIn(env: NodeJS.ProcessEnv): { databaseUrl: string; gatewayUrl: string } {
  const databaseUrl = secretIn(env, 'DATABASE_URL')
  const { stateDir } = readEnvironment(env)
  const { GATEWAY_URL: gatewayUrl } = env
  if (databaseUrl !== undefined && gatewayUrl) return { databaseUrl, gatewayUrl }
  return findRunning(stateDir, 'set both DATABASE_URL and GATEWAY_URL')
}

/** Registers an account, reads its hash and deletes it. */
async function hashByGateway(gatewayUrl: string, databaseUrl: string, password: string): Promise<string> {
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
  const [account] = await query(databaseUrl, 'DELETE FROM users WHERE email = $1 RETURNING password_hash', [email])
  if (!account) throw new UserError(`The gateway at ${gatewayUrl} does not use the database of DATABASE_URL.`)
  return String(account.password_hash)
}

await runCommand(() => seed(process.argv.slice(2), process.env))
