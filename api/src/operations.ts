/**
 * What a request is after, once its job has been added: enough to finish it when the verdict comes, here or, sealed into a
 * ticket, at any other gateway.
 */
import type { JobName, PendingJob, Requests, Verdict } from '@spillway/worker/client'
import type { FromSchema } from 'json-schema-to-ts'
import type { ApiError } from './errors.js'

const RegisterOperation = {
  type: 'object',
  properties: { kind: { const: 'register' }, email: { type: 'string' } },
  required: ['kind', 'email'],
  additionalProperties: false,
} as const
const LoginOperation = {
  type: 'object',
  properties: {
    kind: { const: 'login' },
    /** Null when no account has the address; the job is then a decoy. */
    userId: { type: ['string', 'null'] },
    credentialVersion: { type: 'integer' },
  },
  required: ['kind', 'userId', 'credentialVersion'],
  additionalProperties: false,
} as const
const ChangePasswordOperation = {
  type: 'object',
  properties: {
    kind: { const: 'change_password' },
    userId: { type: 'string' },
    credentialVersion: { type: 'integer' },
    sessionId: { type: 'string' },
  },
  required: ['kind', 'userId', 'credentialVersion', 'sessionId'],
  additionalProperties: false,
} as const
export type RegisterOperation = FromSchema<typeof RegisterOperation>
export type LoginOperation = FromSchema<typeof LoginOperation>
export type ChangePasswordOperation = FromSchema<typeof ChangePasswordOperation>

export type Operation = RegisterOperation | LoginOperation | ChangePasswordOperation
export const Operation = {
  type: 'object',
  discriminator: { propertyName: 'kind' },
  required: ['kind'],
  oneOf: [RegisterOperation, LoginOperation, ChangePasswordOperation],
} as const

/** Adds the job of an operation, where and how the request that it is for may. */
export type Submit = <Name extends JobName>(name: Name, request: Requests[Name]) => Promise<PendingJob>

/** An operation whose job is on its way. */
export interface Started<O extends Operation = Operation> {
  operation: O
  pending: PendingJob
}

export const UserBody = {
  title: 'User',
  description: 'An account',
  type: 'object',
  properties: {
    id: { type: 'string', format: 'uuid' },
    email: { type: 'string', description: 'As addresses are compared: lower-cased' },
    createdAt: { type: 'string', format: 'date-time' },
  },
  required: ['id', 'email', 'createdAt'],
  additionalProperties: false,
  examples: [
    { id: '6f1d2b1e-6d0c-4c44-9a6e-0a3f5f3c1b7a', email: 'ada@example.test', createdAt: '2026-01-02T03:04:05.678Z' },
  ],
} as const
export const TokenBody = {
  title: 'Tokens',
  description: 'A session',
  type: 'object',
  properties: {
    accessToken: {
      type: 'string',
      description: 'JWT (RFC 7519), signed with EdDSA; verify it by /.well-known/jwks.json',
    },
    refreshToken: { type: 'string', description: 'Opaque; good for one refresh' },
    tokenType: { const: 'Bearer' },
    expiresIn: { type: 'integer', description: 'Seconds until the access token expires' },
  },
  required: ['accessToken', 'refreshToken', 'tokenType', 'expiresIn'],
  additionalProperties: false,
  examples: [
    {
      accessToken: 'eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiI2ZjFkIn0.c2lnbmF0dXJl',
      refreshToken: 'bm90IGEgdG9rZW4gb2YgYW55b25l',
      tokenType: 'Bearer',
      expiresIn: 900,
    },
  ],
} as const

export type LoggedIn = { status: 200; body: FromSchema<typeof TokenBody> }
export type Registered = { status: 201; body: FromSchema<typeof UserBody> }
export type PasswordChanged = { status: 204; body: null }
/** How an operation ended well. */
export type Outcome = LoggedIn | Registered | PasswordChanged

/** Finishes an operation whose job is answered; throws an {@link ApiError} for any other end than a good one. */
export type Finish<O extends Operation, Good extends Outcome> = (
  operation: O,
  jobId: string,
  verdict: Verdict,
) => Promise<Good>
