// The command `pnpm seed`: accounts that share one password, and its hash by the default policy.
import { runCommand } from '@spillway/infra/processes/command'
import { parseCommandLine, whole } from '@spillway/infra/processes/command-line'
import { createAccounts, emailOf, seeded } from '@spillway/infra/services/query'
import { readEnvironment, runningDatabase } from '@spillway/infra/start/places'
import { Hasher } from '@spillway/worker/hashing/index'
import { asPolicy, LEAST_ARGON2ID } from '@spillway/worker/hashing/policy'
import { secretIn } from './command.ts'

const help = `pnpm seed [--users N] [--password P]

Makes sure that user-1@example.test to user-N@example.test exist and have the password P.

  --users N      how many accounts [${seeded.count}]
  --password P   their password ["${seeded.password}"]
  --help         prints this

From the environment:

  DATABASE_URL   the database [the database of the running pnpm start]
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
  const { stateDir } = readEnvironment(env)
  const databaseUrl = secretIn(env, 'DATABASE_URL') ?? runningDatabase(stateDir)
  const startedMs = performance.now()
  const hasher = await Hasher.load(asPolicy(LEAST_ARGON2ID), {})
  const created = await createAccounts(databaseUrl, seeded.name, users, await hasher.hash(password))
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1)
  const [first, last] = [emailOf(seeded.name, 1), emailOf(seeded.name, users)]
  console.log(`Created ${created} accounts, found ${users - created}, in ${seconds} s.`)
  console.log(`${first} to ${last} have the password "${password}".`)
}

await runCommand(() => seed(process.argv.slice(2), process.env))
