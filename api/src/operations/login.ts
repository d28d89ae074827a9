/** POST /v1/login: verifies the credential or a decoy, and opens a session. */

import { ACCOUNTS } from '@spillway/queue/wire/job'
import { objectOf } from '@spillway/queue/wire/object-schema'
import { storedHashDigest } from '@spillway/queue/wire/stored-hash'
import { ApiError, type RefusalReason } from '../plugins/errors.js'
import { generationOf } from '../plugins/guessing/device-token.js'
import { TokenBody } from '../schemas/bodies.js'
import { EmailField, normalizeEmail, PasswordField, passwordForms } from '../schemas/credentials.js'
import { guessingHeaders, unauthorizedProblem } from '../schemas/responses.js'
import { schemaOf } from '../schemas/schema.js'
import { guesser } from './access.js'
import { StartAgain } from './operation.js'
import { defineOperation } from './public-operation.js'

const BARRED = [null, 'account_disabled', 'address_unconfirmed'] as const
const NOBODY = '00000000-0000-0000-0000-000000000000'
const UNKNOWN = { id: NOBODY, credentialVersion: 0, passwordHash: '' }
/** Of an account that was just made: the default of its column. */
const FIRST_CREDENTIAL_VERSION = 1

const AttemptContents = objectOf({
  id: { type: 'string' },
  account: { type: 'string' },
  device: { type: ['string', 'null'] },
  network: { type: 'string' },
  failures: { type: 'integer' },
})

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
  body: schemaOf({ title: 'Credentials', ...objectOf({ email: EmailField, password: PasswordField }) }),
  contents: schemaOf(
    objectOf(
      {
        /** {@link NOBODY} for an unknown address, whose job is a decoy. */
        userId: { type: 'string' },
        credentialVersion: { type: 'integer' },
        /** Why nobody may log in, as a place in {@link BARRED}. */
        barred: { type: 'integer', minimum: 0, maximum: BARRED.length - 1 },
        /** The digest of the hash that is verified. */
        verified: { type: 'string' },
        attempt: AttemptContents,
      },
      {
        /** Where the old system may be asked: the address of an account that may be made. */
        email: { type: 'string' },
      },
    ),
  ),
  success: { status: 200, body: schemaOf(TokenBody) },
  sent: ({ tokenCarrier }, tokens) => tokenCarrier.answer(tokens),
  problems: { 401: unauthorizedProblem },

  concerns({ userId, attempt: { device, failures } }, { id }, succeeded) {
    // An account that the old system vouched for has its id only now.
    const account = { userId: userId === NOBODY ? null : userId, isKnownDevice: device !== null }
    return succeeded ? { ...account, sessionId: id } : { ...account, failures: failures + 1 }
  },

  async start(deps, { body: { email: given, password }, caller: login }) {
    if (login === undefined) throw new ApiError('internal_error')
    const { credentials, upgrades, asksOldSystem } = deps
    const email = normalizeEmail(given)
    const { user, ask } = await credentials.find(email)
    await login.confirm(user === null ? undefined : generationOf({ ...user, userId: user.id }))
    const request = {
      ...passwordForms(password),
      owner: ACCOUNTS,
      // A decoy for an account that may not log in yet: a right password would be refused later
      // than a wrong one.
      storedHash: user?.barredBy === null ? user.passwordHash : null,
      ...(asksOldSystem ? { oldSystem: { email, ask } } : {}),
      ...upgrades.request,
    }
    // As long for an unknown address as for a known one: a ticket must not tell them apart.
    const { id: userId, credentialVersion, passwordHash } = user ?? UNKNOWN
    const barred = user === null ? 0 : BARRED.indexOf(user.barredBy)
    const verified = storedHashDigest(passwordHash)
    const address = asksOldSystem ? { email } : {}
    const contents = { userId, credentialVersion, barred, verified, attempt: login.attempt, ...address }
    return { job: { name: 'verify', request }, contents }
  },

  async finish(
    { sessionOpener, tokenIssuer, upgrades, guessing },
    { verified, attempt, email, barred, ...known },
    { verdict, client, ...job },
  ) {
    const isKnown = known.userId !== NOBODY
    const vouchedHash = verdict.kind === 'match' && email !== undefined ? verdict.hash : undefined
    if (verdict.kind !== 'match' || !(isKnown || vouchedHash !== undefined))
      throw new ApiError('invalid_credentials', { reason: reasonOf(isKnown, barred) })
    const opening = { id: job.id, credentialVersion: known.credentialVersion, ...client }
    const session =
      email === undefined || vouchedHash === undefined
        ? await sessionOpener.open({ ...opening, userId: known.userId })
        : await sessionOpener.openVouchedFor(
            { ...opening, userId: isKnown ? known.userId : null },
            { email, passwordHash: vouchedHash },
          )
    // Another login made the account meanwhile: the password is verified against its hash.
    if (session === 'stale' && vouchedHash !== undefined) throw new StartAgain()
    if (session === 'stale') throw new ApiError('invalid_credentials', { reason: 'password_changed' })
    if (session === 'exists') throw new ApiError('ticket_used')
    const { userId } = session
    const credentialVersion = isKnown ? known.credentialVersion : FIRST_CREDENTIAL_VERSION
    if (verdict.hashFollows) upgrades.follow(job, { userId, verified })
    const tokens = await tokenIssuer.issue(session)
    guessing.end(attempt, 'succeeded')
    return { ...tokens, deviceToken: guessing.issueDeviceToken(attempt, generationOf({ userId, credentialVersion })) }
  },

  failed: ({ guessing }, { attempt }) => guessing.failed(attempt),
  mayBeHashed: ({ guessing }, { attempt }) => guessing.mayBeHashed(attempt),
  unanswered: ({ guessing }, { attempt }) => guessing.end(attempt, 'nothing'),
  setAside: ({ guessing }, { attempt }) => guessing.setAside(attempt),
})

/** Of a password that did not match: the password of a barred account was not verified. */
function reasonOf(isKnown: boolean, barred: number): RefusalReason {
  return isKnown ? (BARRED[barred] ?? 'wrong_password') : 'unknown_account'
}
