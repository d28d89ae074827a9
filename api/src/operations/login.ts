/** POST /v1/login: loads the credential, verifies it (or a decoy), and opens a session. The hash is upgraded after the answer. */
import { ASK_OLD_SYSTEM } from '@spillway/client/protocol/stored-hash'
import { generationOf } from '../guessing/device-token.js'
import { ApiError } from '../problems/errors.js'
import { TokenBody } from '../schemas/bodies.js'
import { guessingHeaders } from '../schemas/challenge.js'
import { EmailField, normalizeEmail, PasswordField, passwordForms } from '../schemas/credentials.js'
import { unauthorizedProblem } from '../schemas/responses.js'
import { schemaOf } from '../schemas/schema.js'
import { guesser } from './access.js'
import { digestOf } from './hash-upgrades.js'
import type { Credential } from './login-credential.js'
import { completeAccount, createVouchedFor } from './old-system.js'
import { defineOperation } from './public-operation.js'

/** Whether an account came without a hash, and may log in. */
function isToBeAsked({ mayLogIn, passwordHash }: Credential): boolean {
  return mayLogIn && passwordHash === ASK_OLD_SYSTEM
}

/** The user of an unknown address. */
const NOBODY = '00000000-0000-0000-0000-000000000000'

/** The attempt of a login, in its ticket. */
const AttemptContents = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    account: { type: 'string' },
    device: { type: ['string', 'null'] },
    network: { type: 'string' },
  },
  required: ['id', 'account', 'device', 'network'],
  additionalProperties: false,
} as const

export const login = defineOperation({
  kind: 'login',
  method: 'POST',
  url: '/v1/login',
  operationId: 'login',
  tags: ['Sessions'],
  summary: 'Log in',
  description:
    'The same 401 for a wrong password and an unknown address; after the same time too, where the hash of the account ' +
    "is of today's policy. Failures of devices that have never logged in to the account are counted together: after some of them a login " +
    'has to wait, or to solve the challenge of the problem; after 100 it has to solve one.',
  access: guesser,
  headers: guessingHeaders,
  body: schemaOf({
    title: 'Credentials',
    type: 'object',
    properties: { email: EmailField, password: PasswordField },
    required: ['email', 'password'],
    additionalProperties: false,
  }),
  contents: schemaOf({
    type: 'object',
    properties: {
      /** {@link NOBODY} for an unknown address, whose job is a decoy. */
      userId: { type: 'string' },
      credentialVersion: { type: 'integer' },
      /** The digest of the hash that is verified. */
      verified: { type: 'string' },
      attempt: AttemptContents,
      /** Where the old system may be asked: the address of an account that may be made. */
      email: { type: 'string' },
    },
    required: ['userId', 'credentialVersion', 'verified', 'attempt'],
    additionalProperties: false,
  }),
  answer: { status: 200, body: schemaOf(TokenBody) },
  sent: ({ tokenCarrier }, tokens) => tokenCarrier.answer(tokens),
  problems: { 401: unauthorizedProblem },

  concerns({ userId }, { id }, succeeded) {
    // An account that the old system vouched for has its id only now.
    const account = { userId: userId === NOBODY ? null : userId }
    return succeeded ? { ...account, sessionId: id } : account
  },

  async start(deps, { body: { email: given, password }, caller: login }) {
    if (login === undefined) throw new ApiError('internal_error')
    const { findCredential, upgrades, asksOldSystem } = deps
    const email = normalizeEmail(given)
    const user = await findCredential(email)
    await login.confirm(user === null ? undefined : generationOf({ ...user, userId: user.id }))
    const request = {
      ...passwordForms(password),
      // A decoy for an account that may not log in yet: a right password would take longer to be refused than a wrong one.
      storedHash: user?.mayLogIn ? user.passwordHash : null,
      ...(asksOldSystem ? { oldSystem: { email, ask: user === null || isToBeAsked(user) } } : {}),
      ...upgrades.request,
    }
    // As long for an unknown address as for a known one: a ticket must not tell them apart.
    const {
      id: userId,
      credentialVersion,
      passwordHash,
    } = user ?? { id: NOBODY, credentialVersion: 0, passwordHash: '' }
    const verified = digestOf(passwordHash)
    const address = asksOldSystem ? { email } : {}
    const contents = { userId, credentialVersion, verified, attempt: login.attempt, ...address }
    return { job: { name: 'verify', request }, contents }
  },

  async finish(
    { database, sessions, issueTokens, upgrades, guessing },
    { verified, attempt, email, ...known },
    { verdict, client, ...job },
  ) {
    const isKnown = known.userId !== NOBODY
    const isVouchedFor = verdict.kind === 'match' && verdict.hash !== undefined && email !== undefined
    if (verdict.kind !== 'match' || !(isKnown || isVouchedFor))
      throw new ApiError('invalid_credentials', { reason: isKnown ? 'wrong_password' : 'unknown_account' })
    const vouchedFor = isVouchedFor ? { email, passwordHash: verdict.hash ?? '' } : undefined
    if (isKnown && vouchedFor !== undefined) await completeAccount(database, known.userId, vouchedFor.passwordHash)
    const account = isKnown || vouchedFor === undefined ? known : await createVouchedFor(database, vouchedFor)
    if (account === undefined) throw new ApiError('invalid_credentials', { reason: 'password_changed' })
    const { userId, credentialVersion } = account
    const session = await sessions.open({ id: job.id, userId, credentialVersion, ...client })
    if (session === 'stale') throw new ApiError('invalid_credentials', { reason: 'password_changed' })
    if (session === 'exists') throw new ApiError('ticket_used')
    if (verdict.hashFollows) upgrades.follow(job, { userId, verified })
    const tokens = await issueTokens(session)
    guessing.succeeded(attempt)
    return { ...tokens, deviceToken: guessing.issueDeviceToken(attempt, generationOf({ userId, credentialVersion })) }
  },

  failed: ({ guessing }, { attempt }) => guessing.failed(attempt),
  unanswered: ({ guessing }, { attempt }) => guessing.unanswered(attempt),
})
