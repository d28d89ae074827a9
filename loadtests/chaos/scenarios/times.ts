// Whether the times of a gateway's answers tell which addresses have an account, and of which kind:
// a stranger on a quiet network asks about addresses of several kinds, in random turn.
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { type ApiAnswer, type ApiClient, createApiClient } from '@spillway/infra/harness/api-client'
import { createAccounts, emailOf, query } from '@spillway/infra/services/query'
import { SMTPServer } from 'smtp-server'
import { hash } from '../../contenders/hashing.ts'
import { quantile } from '../../measure/quantile.ts'
import type { Scenario, Trial } from '../harness.ts'

/** Answers for each kind, for which an idle machine takes six minutes. */
const SAMPLES = 1_000
/** How likely it is that a run tells any two apart that are the same. */
const LEVEL = 0.01
/** Of all answers, those whose time is not kept: connections are opened and code is compiled. */
const WARM_UP = 0.05
/** The share of answers with another status that is tolerated. */
const ODD = 0.02

/** The addresses of one kind. */
interface Kind {
  name: string
  /** Asks about the n-th of them. */
  ask(n: number): Promise<ApiAnswer>
  /** Told apart on purpose: a run that does not see it says nothing about the others. */
  differs?: boolean
}

interface Question {
  name: string
  /** Of every answer. */
  status: number
  kinds: Kind[]
}

/** The probability of such a distance of samples of one distribution (Kolmogorov-Smirnov); sees a shift, a tail, a second peak. */
function kolmogorovSmirnov(one: readonly number[], other: readonly number[]): number {
  // Where all values up to one are counted, each on its side, the sum is the distance there.
  const steps = [
    ...one.map((value) => ({ value, share: 1 / one.length })),
    ...other.map((value) => ({ value, share: -1 / other.length })),
  ].sort((a, b) => a.value - b.value)
  let [distance, sum] = [0, 0]
  for (const [place, { value, share }] of steps.entries()) {
    sum += share
    if (steps[place + 1]?.value !== value) distance = Math.max(distance, Math.abs(sum))
  }
  const x = distance * Math.sqrt((one.length * other.length) / (one.length + other.length))
  // Below, the series converges slowly, and the probability is 1 except for 10^-5.
  if (x < 0.3) return 1
  let tail = 0
  for (let k = 1; k <= 20; k++) tail += (k % 2 === 1 ? 2 : -2) * Math.exp(-2 * (k * x) ** 2)
  return tail
}

/** In ms, of each kind. Asked by chance, not in turn: an answer may take longer for what the one before it left behind. */
async function askInTurn(trial: Trial, questions: readonly Question[]): Promise<Map<Kind, number[]>> {
  const all = questions.flatMap(({ status, kinds }) => kinds.map((kind) => ({ status, kind, asked: 0, odd: 0 })))
  const timesMs = new Map<Kind, number[]>(all.map(({ kind }) => [kind, []]))
  const total = all.length * SAMPLES
  for (let n = -total * WARM_UP; n < total && !trial.servers.keeper.closing; n++) {
    const about = all[randomInt(all.length)]
    if (about === undefined) break
    const { status, tookMs } = await about.kind.ask(about.asked++)
    if (status !== about.status) about.odd++
    else if (n >= 0) timesMs.get(about.kind)?.push(tookMs)
  }
  for (const { kind, asked, odd } of all)
    trial.expect(odd <= asked * ODD, `${kind.name}: ${odd} of ${asked} answers had another status`)
  return timesMs
}

/** Every two kinds of each question. */
function compare(questions: readonly Question[], timesMs: Map<Kind, number[]>) {
  const pairs = questions.flatMap(({ name, kinds }) =>
    kinds.flatMap((one, place) => kinds.slice(place + 1).map((other) => ({ name, one, other }))),
  )
  return pairs.map(({ name, one, other }) => {
    const [times, others] = [timesMs.get(one) ?? [], timesMs.get(other) ?? []]
    // Corrected for the number of all comparisons (Bonferroni).
    const p = Math.min(1, kolmogorovSmirnov(times, others) * pairs.length)
    const medians = [times, others].map((some) => quantile(some, 0.5)?.toFixed(2)).join(' and ')
    return {
      text: `${name}: ${one.name} and ${other.name}, medians ${medians} ms, p ${p.toFixed(3)}`,
      isToldApart: p < LEVEL,
      differs: one.differs === true || other.differs === true,
    }
  })
}

const PASSWORD = 'correct horse battery staple'
const WRONG = 'a wrong password'

/** Makes so many accounts of each kind that strangers are not delayed, and what they ask about them. */
async function makeQuestions(databaseUrl: string, client: ApiClient): Promise<Question[]> {
  const argon2id = await hash(PASSWORD, 'argon2id')
  /** Of one length, so that requests have one. Without a stored hash they are nobody's. */
  async function addresses(name: string, storedHash?: string, isConfirmed = true) {
    if (storedHash !== undefined) await createAccounts(databaseUrl, name, SAMPLES, storedHash)
    if (isConfirmed)
      await query(databaseUrl, "UPDATE users SET email_confirmed_at = now() WHERE email LIKE $1 || '-%'", [name])
    return (n: number) => emailOf(name, n + 1)
  }
  type AddressOf = Awaited<ReturnType<typeof addresses>>
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
  const owner = await addresses('owner', argon2id)
  const session = await client.login({ email: owner(0), password: PASSWORD })
  const headers = { authorization: `Bearer ${session.body.accessToken}` }

  const logsIn = (addressOf: AddressOf, password: string) => (n: number) =>
    client.login({ email: addressOf(n % SAMPLES), password })
  const forgets = (addressOf: AddressOf) => (n: number) =>
    client.post('/v1/password/forgotten', { email: addressOf(n % SAMPLES) })
  const moves = (addressOf: AddressOf) => (n: number) =>
    client.put('/v1/me/email', { newEmail: addressOf(n % SAMPLES), password: PASSWORD }, { headers })
  return [
    {
      name: 'a login by a wrong password',
      status: 401,
      kinds: [
        ...alike.map(([name, addressOf]) => ({ name, ask: logsIn(addressOf, WRONG) })),
        { name: 'right password, address not confirmed', ask: logsIn(unconfirmed, PASSWORD) },
        { name: 'bcrypt', ask: logsIn(bcrypt, WRONG), differs: true },
      ],
    },
    {
      name: 'a login by the longest password',
      status: 401,
      kinds: alike.map(([name, addressOf]) => ({ name, ask: logsIn(addressOf, 'x'.repeat(1_024)) })),
    },
    {
      name: 'a forgotten password',
      status: 204,
      kinds: [
        { name: 'unknown', ask: forgets(nobody) },
        { name: 'of today', ask: forgets(current) },
      ],
    },
    {
      name: 'a registration',
      status: 201,
      kinds: [
        { name: 'free', ask: (n) => client.register({ email: free(n), password: PASSWORD }) },
        { name: 'taken', ask: (n) => client.register({ email: current(n % SAMPLES), password: PASSWORD }) },
      ],
    },
    {
      name: 'a change of address',
      status: 204,
      kinds: [
        { name: 'free', ask: moves(nobody) },
        { name: 'taken', ask: moves(current) },
      ],
    },
  ]
}

/** A mail server that takes every mail and keeps nothing. Gives the settings of a gateway. */
async function startMailSink(trial: Trial): Promise<NodeJS.ProcessEnv> {
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    disableReverseLookup: true,
    logger: false,
    onData: (stream, _session, done) => void stream.resume().on('end', () => done()),
  }).on('error', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  trial.atEnd(() => server.close(() => undefined))
  const { port } = server.server.address() as AddressInfo
  return {
    SMTP_URL: `smtp://127.0.0.1:${port}`,
    MAIL_FROM: 'no-reply@example.com',
    MAIL_CONFIRM_URL: 'https://app.example.com/confirm#{token}',
    MAIL_RESET_URL: 'https://app.example.com/reset#{token}',
  }
}

export const answerTimes: Scenario = {
  name: 'answer-times',
  promise: 'What SECURITY says to be alike cannot be told apart by time, where what is known to differ can.',
  async try(trial) {
    const mail = await startMailSink(trial)
    // Guessing is counted, and never refused.
    const guessing = { GUESSES_PER_ACCOUNT: '100', LOGIN_NEEDS_CONFIRMATION: 'true', ACCESS_TOKEN_TTL_S: '86400' }
    const gatewayEnv = { ...mail, ...guessing }
    const system = await trial.spillway({ hash: 'argon2id', gateways: 1, workers: 1, gatewayEnv })
    const client = createApiClient(system.gateways[0]?.url ?? '')
    trial.atEnd(() => client.close())
    const questions = await makeQuestions(trial.servers.postgres.url, client)
    const pairs = compare(questions, await askInTurn(trial, questions))
    const toldApart = pairs.filter(({ isToldApart }) => isToldApart)
    for (const { text } of toldApart.filter(({ differs }) => !differs)) trial.expect(false, text)
    trial.expectFigure(toldApart.length > 0, `${toldApart.length} of ${pairs.length} pairs told apart`)
  },
}
