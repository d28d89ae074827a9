// The accounts that log in: many addresses, one password, and for each kind of hash one hash, since its salt changes
// nothing about its cost.
import { randomUUID } from 'node:crypto'
import { connectDatabase } from '@spillway/prisma'
import type { Running } from '../contenders/contender.ts'
import { type Algorithm, hash } from '../contenders/hashing.ts'
import { createClient } from './client.ts'

/** A hash to log in against: a real one, or a double that a worker accepts when told to (`wait-25` waits 25 ms). */
export type Credential = Algorithm | 'token' | `wait-${number}`

/** As many as the most users of any scenario. */
const ACCOUNTS = 5_000
const FIRST_LOGINS = 3
const WARM_UP_TIMEOUT_MS = 60_000
const PASSWORD = 'correct horse battery staple'

export interface Login {
  email: string
  password: string
}

export interface Accounts {
  /** Creates the accounts of this kind if they are not there yet. */
  seed(credential: Credential): Promise<void>
  /** A login whose verdict costs exactly one verify everywhere. */
  login(credential: Credential, caller: number): Login
  /** A registration that nobody has made before. */
  registration(): Login
  /** A few requests one after the other, so that code is compiled and connections are open. @throws when one fails */
  warmUp(running: Running, credential: Credential): Promise<void>
}

/** @param count of each kind; callers beyond that share them */
export function createAccounts(databaseUrl: string, count = ACCOUNTS): Accounts {
  const seeded = new Map<Credential, Promise<void>>()

  async function insert(credential: Credential): Promise<void> {
    const database = connectDatabase({ url: databaseUrl, poolSize: 1, statementTimeoutMs: 30_000 })
    try {
      const passwordHash = await storedHash(credential)
      const data = Array.from({ length: count }, (_, n) => ({
        id: randomUUID(),
        email: email(credential, n),
        passwordHash,
      }))
      await database.user.createMany({ data, skipDuplicates: true })
    } finally {
      await database.$disconnect()
    }
  }

  const accounts: Accounts = {
    seed(credential) {
      const done = seeded.get(credential) ?? insert(credential)
      seeded.set(credential, done)
      return done
    },
    login: (credential, caller) => ({
      email: email(credential, caller % count),
      // bcrypt is verified with a wrong password and answered 401. With the right one Spillway would replace each account's
      // hash by argon2id at its first login, and from the second on no longer be measured with bcrypt.
      password: credential === 'bcrypt' ? `not ${PASSWORD}` : PASSWORD,
    }),
    registration: () => ({ email: `${randomUUID()}@load.example`, password: PASSWORD }),
    async warmUp({ url, neighbourPath }, credential) {
      await accounts.seed(credential)
      // How long a first request takes is not judged.
      const client = createClient(url, { timeoutMs: WARM_UP_TIMEOUT_MS })
      const logins = Array.from({ length: FIRST_LOGINS }, (_, n) => accounts.login(credential, n))
      const requests = [
        ...logins.map((login) => () => client.post('/v1/login', login)),
        () => client.get(neighbourPath),
      ]
      try {
        for (const request of requests) {
          const { outcome, status, body } = await request()
          if (outcome !== 'ok')
            throw new Error(`a first request ended as ${outcome}, status ${status}: ${body.slice(0, 200)}`)
        }
      } finally {
        client.close()
      }
    },
  }
  return accounts
}

function email(credential: Credential, n: number): string {
  return `${credential}-${n}@load.example`
}

async function storedHash(credential: Credential): Promise<string> {
  if (credential === 'token') return '$spillway-token$'
  if (credential === 'bcrypt' || credential === 'argon2id') return hash(PASSWORD, credential)
  return `$spillway-wait$${credential.slice('wait-'.length)}$`
}
