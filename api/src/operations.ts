/**
 * What a request is after, once its job has been added: enough to finish it when the verdict comes, here or, sealed into a
 * ticket, at any other gateway.
 */
import type { JobName, PendingJob, Requests, Verdict } from '@spillway/worker/client'
import Type, { type Static } from 'typebox'
import type { ApiError } from './errors.js'

const RegisterOperation = Type.Object({ kind: Type.Literal('register'), email: Type.String() })
const LoginOperation = Type.Object({
  kind: Type.Literal('login'),
  /** Null when no account has the address; the job is then a decoy. */
  userId: Type.Union([Type.String(), Type.Null()]),
  credentialVersion: Type.Integer(),
})
const ChangePasswordOperation = Type.Object({
  kind: Type.Literal('change_password'),
  userId: Type.String(),
  credentialVersion: Type.Integer(),
  sessionId: Type.String(),
})
export type RegisterOperation = Static<typeof RegisterOperation>
export type LoginOperation = Static<typeof LoginOperation>
export type ChangePasswordOperation = Static<typeof ChangePasswordOperation>

export const Operation = Type.Union([RegisterOperation, LoginOperation, ChangePasswordOperation])
export type Operation = Static<typeof Operation>

/** Adds the job of an operation, where and how the request that it is for may. */
export type Submit = <Name extends JobName>(name: Name, request: Requests[Name]) => Promise<PendingJob>

/** An operation whose job is on its way. */
export interface Started<O extends Operation = Operation> {
  operation: O
  pending: PendingJob
}

export const UserBody = Type.Object({
  id: Type.String({ format: 'uuid' }),
  email: Type.String(),
  createdAt: Type.String({ format: 'date-time' }),
})
export const TokenBody = Type.Object({
  accessToken: Type.String({ description: 'JWT (RFC 7519), signed with EdDSA; verify it by /.well-known/jwks.json' }),
  refreshToken: Type.String({ description: 'Opaque; good for one refresh' }),
  tokenType: Type.Literal('Bearer'),
  expiresIn: Type.Integer({ description: 'Seconds until the access token expires' }),
})

export type LoggedIn = { status: 200; body: Static<typeof TokenBody> }
export type Registered = { status: 201; body: Static<typeof UserBody> }
export type PasswordChanged = { status: 204; body: null }
/** How an operation ended well. */
export type Outcome = LoggedIn | Registered | PasswordChanged

/** Finishes an operation whose job is answered; throws an {@link ApiError} for any other end than a good one. */
export type Finish<O extends Operation, Good extends Outcome> = (
  operation: O,
  jobId: string,
  verdict: Verdict,
) => Promise<Good>
