// What a stranger asks a gateway about addresses. All answers to one question are the same except for what their time may tell.
import { once } from 'node:events'
import { type ApiAnswer, type ApiClient, createApiClient } from '@spillway/infra/rig/api-client'
import { createAccounts, query } from '@spillway/infra/services/query'
import { SMTPServer } from 'smtp-server'
import { hash } from '../../contenders/hashing.ts'

/** The addresses of one kind. */
export interface Kind {
  name: string
  /** Asks about the n-th of them. The time of the answer is what is compared. */
  ask(n: number): Promise<ApiAnswer>
  /** Whether SECURITY says that they take as long as the others. */
  isPromised: boolean
}

export interface Question {
  name: string
  /** Of every answer. */
  status: number
  kinds: readonly Kind[]
}

/** Of the gateway that is asked; mail is on too. Guessing is counted, and never refused. */
export const settings = {
  GUESSES_PER_ACCOUNT: '100',
  LOGIN_NEEDS_CONFIRMATION: 'true',
  ACCESS_TOKEN_TTL_S: '86400',
}
/** Of a gateway that asks for a challenge after the first failure. */
export const challengingSettings = { ...settings, GUESSES_PER_ACCOUNT: '1' }

const PASSWORD = 'correct horse battery staple'
const WRONG = 'a wrong password'
const LONG = 'x'.repeat(1_024)
/** So many addresses of each kind at the gateway that challenges. */
const CHALLENGED = 20

type AddressOf = (n: number) => string

export interface Asked {
  databaseUrl: string
  url: string
  challengingUrl: string
  /** So many of each kind. With as many as samples, strangers fail on no account often enough to be delayed. */
  accounts: number
}

/** Makes the accounts that are asked about. */
export async function openQuestions({ databaseUrl, url, challengingUrl, accounts }: Asked) {
  const client = createApiClient(url)
  const challenging = createApiClient(challengingUrl)
  const argon2id = await hash(PASSWORD, 'argon2id')
  /** Of one length, so that requests have one. Without a stored hash they are nobody's. Those that are not confirmed get decoys. */
  async function addresses(name: string, storedHash?: string, isConfirmed = true): Promise<AddressOf> {
    if (storedHash !== undefined) {
      const emails = await createAccounts(databaseUrl, name, accounts + CHALLENGED, storedHash)
      if (isConfirmed) await confirm(databaseUrl, emails)
    }
    return (n) => `${name}-${n + 1}@example.com`
  }
  const [nobody, current] = [await addresses('kind-1'), await addresses('kind-2', argon2id)]
  const alike: [name: string, addressOf: AddressOf][] = [
    ['unknown', nobody],
    ['of today', current],
    ['unsupported hash', await addresses('kind-3', '$unsupported$1$damaged')],
    ['hash that costs too much', await addresses('kind-4', `$2b$31$${'a'.repeat(53)}`)],
  ]
  const bcrypt = await addresses('kind-5', await hash(PASSWORD, 'bcrypt'))
  const free = await addresses('kind-6')
  const unconfirmed = await addresses('kind-7', argon2id, false)

  const kind = (name: string, ask: Kind['ask'], isPromised = true): Kind => ({ name, ask, isPromised })
  const logsIn = (addressOf: AddressOf, password: string) => (n: number) =>
    client.login({ email: addressOf(n % accounts), password })
  // Accounts of its own: a failure there delays the next login everywhere.
  const isChallenged = (addressOf: AddressOf) => (n: number) =>
    challenging.login({ email: addressOf(accounts + (n % CHALLENGED)), password: WRONG })
  for (const [, addressOf] of alike) for (let n = 0; n < CHALLENGED; n++) await isChallenged(addressOf)(n)

  const forgets = (addressOf: AddressOf) => (n: number) =>
    client.post('/v1/password/forgotten', { email: addressOf(n % accounts) })
  const asksAfterwards = (addressOf: AddressOf) => async (n: number) => {
    await forgets(addressOf)(n)
    return client.get('/healthz')
  }
  const headers = { authorization: `Bearer ${await accessToken(databaseUrl, client, argon2id)}` }
  const moves = (addressOf: AddressOf) => (n: number) =>
    client.put('/v1/me/email', { newEmail: addressOf(n % accounts), password: PASSWORD }, { headers })

  const questions: Question[] = [
    {
      name: 'a login by a wrong password',
      status: 401,
      kinds: [
        ...alike.map(([name, addressOf]) => kind(name, logsIn(addressOf, WRONG))),
        kind('right password, address not confirmed', logsIn(unconfirmed, PASSWORD)),
        kind('bcrypt', logsIn(bcrypt, WRONG), false),
      ],
    },
    {
      name: 'a login by the longest password',
      status: 401,
      kinds: alike.map(([name, addressOf]) => kind(name, logsIn(addressOf, LONG))),
    },
    {
      name: 'a login that has to solve a challenge',
      status: 429,
      kinds: alike.map(([name, addressOf]) => kind(name, isChallenged(addressOf))),
    },
    {
      name: 'a forgotten password',
      status: 204,
      kinds: [kind('unknown', forgets(nobody)), kind('of today', forgets(current))],
    },
    {
      name: 'the request after a forgotten password',
      status: 200,
      kinds: [kind('unknown', asksAfterwards(nobody), false), kind('of today', asksAfterwards(current), false)],
    },
    {
      name: 'a registration',
      status: 201,
      kinds: [
        kind('free', (n) => client.register({ email: free(n), password: PASSWORD })),
        kind('taken', (n) => client.register({ email: current(n % accounts), password: PASSWORD })),
      ],
    },
    {
      name: 'a change of address',
      status: 204,
      kinds: [kind('free', moves(nobody)), kind('taken', moves(current))],
    },
  ]
  return {
    questions,
    close(): void {
      client.close()
      challenging.close()
    },
  }
}

async function confirm(databaseUrl: string, emails: readonly string[]): Promise<void> {
  await query(databaseUrl, 'UPDATE users SET email_confirmed_at = now() WHERE email = ANY($1)', [emails])
}

/** Of an account of its own. */
async function accessToken(databaseUrl: string, client: ApiClient, storedHash: string): Promise<string> {
  const [email = ''] = await createAccounts(databaseUrl, 'owner', 1, storedHash)
  await confirm(databaseUrl, [email])
  const answer = await client.login({ email, password: PASSWORD })
  if (answer.body.accessToken === undefined) throw new Error(`the owner's login was answered ${answer.status}`)
  return answer.body.accessToken
}

// A mail server that takes every mail and keeps nothing.

export async function startMailSink() {
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    disableReverseLookup: true,
    logger: false,
    onData(stream, _session, done) {
      stream.resume().on('end', () => done())
    },
  }).on('error', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  const address = server.server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the mail server does not listen')
  return {
    /** Settings of a gateway that sends here. */
    env: {
      SMTP_URL: `smtp://127.0.0.1:${address.port}`,
      MAIL_FROM: 'no-reply@example.com',
      MAIL_CONFIRM_URL: 'https://app.example.com/confirm#{token}',
      MAIL_RESET_URL: 'https://app.example.com/reset#{token}',
    },
    async close(): Promise<void> {
      for (const connection of server.connections) connection.close()
      await new Promise<void>((resolve) => void server.close(() => resolve()))
    },
  }
}
