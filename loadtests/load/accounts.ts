// Accounts to log in with: many addresses, one password, one hash of each kind.
import { randomUUID } from 'node:crypto'
import { type ApiAnswer, type Credentials, createApiClient } from '@spillway/infra/harness/api-client'
import { until } from '@spillway/infra/processes/until'
import { createAccounts, emailOf } from '@spillway/infra/services/query'
import type { Running } from '../contenders/contender.ts'
import { type Algorithm, hash } from '../contenders/hashing.ts'
import { outcomeOf } from '../measure/tally.ts'
import { closedLoop } from './open-loop.ts'

/** A real hash (argon2id of a dear policy), or a double (`wait-25` waits 25 ms). */
export type Credential = Algorithm | 'dear' | `wait-${number}`

/** As many as the most users of any scenario. */
const ACCOUNTS = 5_000
/** One caller is not enough: what comes in bundles under load is compiled for bundles. */
const WARM_UP_CALLERS = 20
/** Until a first request must have succeeded; how long it takes is not judged. */
const FIRST_ANSWER_MS = 30_000
const INSERTED_WITHIN_MS = 60_000
const PASSWORD = 'correct horse battery staple'

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

  /** A login whose result costs exactly one verify everywhere. */
  login(credential: Credential, caller: number): Credentials {
    return {
      email: emailOf(credential, (caller % this.#count) + 1),
      // A wrong password for bcrypt: after a right one Spillway would store argon2id instead.
      password: credential === 'bcrypt' ? `not ${PASSWORD}` : PASSWORD,
    }
  }

  registration(): Credentials {
    return { email: `${randomUUID()}@load.example`, password: PASSWORD }
  }

  /** Logs in until code is compiled and connections are open. @throws when nothing succeeds */
  async warmUp({ url, neighbourPath }: Running, credential: Credential, forMs: number): Promise<void> {
    await this.seed(credential)
    const client = createApiClient(url, { timeoutMs: FIRST_ANSWER_MS })
    let sent = 0
    const call = () => client.login(this.login(credential, sent++))
    try {
      await untilOk(call)
      await untilOk(() => client.get(neighbourPath))
      const endMs = performance.now() + forMs
      await closedLoop({ callers: WARM_UP_CALLERS, isOver: () => performance.now() >= endMs, call })
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
  if (credential === 'bcrypt' || credential === 'argon2id' || credential === 'dear') return hash(PASSWORD, credential)
  return `$spillway-wait$${credential.slice('wait-'.length)}$`
}
