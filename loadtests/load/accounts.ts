// Accounts to log in with: many addresses, one password, one hash of each kind.
import { randomUUID } from 'node:crypto'
import { until } from '@spillway/infra/processes/until'
import { type ApiAnswer, type Credentials, createApiClient } from '@spillway/infra/rig/api-client'
import { closedLoop } from '@spillway/infra/rig/open-loop'
import { createAccounts } from '@spillway/infra/services/query'
import type { Running } from '../contenders/contender.ts'
import { type Algorithm, hash, TOKEN_HASH } from '../contenders/hashing.ts'
import { outcomeOf } from '../measure/tally.ts'

/** A real hash (argon2id of a dear policy), or a double (`wait-25` waits 25 ms). */
export type Credential = Algorithm | 'dear' | 'token' | `wait-${number}`

/** The status of a verdict: bcrypt is verified with a wrong password. */
export const verdictOf = (credential: Credential): number => (credential === 'bcrypt' ? 401 : 200)

/** As many as the most users of any scenario. */
const ACCOUNTS = 5_000
/** One caller is not enough: what comes in bundles under load is compiled for bundles. */
const WARM_UP_CALLERS = 20
/** Until a first request must have succeeded; how long it takes is not judged. */
const FIRST_ANSWER_MS = 30_000
const INSERTED_WITHIN_MS = 60_000
const PASSWORD = 'correct horse battery staple'

/** How many logins a server is to be warm after, and when that is enough, whatever their number. */
export interface WarmUp {
  logins: number
  atMostMs: number
}

/** Accounts of a database, of each kind as many; callers beyond that share them. */
export class Accounts {
  readonly #seeded = new Map<Credential, Promise<void>>()
  readonly #databaseUrl: string
  readonly #count: number

  constructor(databaseUrl: string, count = ACCOUNTS) {
    this.#databaseUrl = databaseUrl
    this.#count = count
  }

  /** Creates the accounts of this kind if they are not there yet. */
  seed(credential: Credential): Promise<void> {
    const done = this.#seeded.get(credential) ?? this.#insert(credential)
    this.#seeded.set(credential, done)
    return done
  }

  /** A login whose verdict costs exactly one verify everywhere. */
  login(credential: Credential, caller: number): Credentials {
    return {
      email: `${credential}-${(caller % this.#count) + 1}@example.com`,
      // A wrong password for bcrypt: after a right one Spillway would store argon2id instead.
      password: credential === 'bcrypt' ? `not ${PASSWORD}` : PASSWORD,
    }
  }

  registration(): Credentials {
    return { email: `${randomUUID()}@load.example`, password: PASSWORD }
  }

  /** Logs in until code is compiled and connections are open. @throws when nothing succeeds */
  async warmUp({ url, neighbourPath }: Running, credential: Credential, { logins, atMostMs }: WarmUp): Promise<void> {
    await this.seed(credential)
    const client = createApiClient(url, { timeoutMs: FIRST_ANSWER_MS })
    let sent = 0
    const call = () => client.login(this.login(credential, sent++))
    try {
      await untilOk(call)
      await untilOk(() => client.get(neighbourPath))
      const endMs = performance.now() + atMostMs
      const isOver = () => sent >= logins || performance.now() >= endMs
      await closedLoop({ callers: WARM_UP_CALLERS, isOver, call })
    } finally {
      client.close()
    }
  }

  async #insert(credential: Credential): Promise<void> {
    const passwordHash = await storedHash(credential)
    // On a busy machine PostgreSQL may need several tries to be connected to.
    const inserted = () => createAccounts(this.#databaseUrl, credential, this.#count, passwordHash)
    await until(inserted, { timeoutMs: INSERTED_WITHIN_MS, what: `accounts with ${credential}` })
  }
}

/** On a machine that is busy elsewhere a server may need several tries to reach its database. */
async function untilOk(request: () => Promise<ApiAnswer>): Promise<void> {
  let last = ''
  const isOk = async () => {
    const answer = await request()
    last = `${outcomeOf(answer)}, status ${answer.status}: ${answer.text.slice(0, 200)}`
    return outcomeOf(answer) === 'ok'
  }
  await until(isOk, { timeoutMs: FIRST_ANSWER_MS }).catch((cause) => {
    throw new Error(`a first request ended as ${last}`, { cause })
  })
}

async function storedHash(credential: Credential): Promise<string> {
  if (credential === 'token') return TOKEN_HASH
  if (credential === 'bcrypt' || credential === 'argon2id' || credential === 'dear') return hash(PASSWORD, credential)
  return `$spillway-wait$${credential.slice('wait-'.length)}$`
}
