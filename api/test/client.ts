// A client of the public API, as a program on another machine would write it.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import { until } from '@spillway/infra/processes/until'

/** The fields of answers; each answer has some of them. */
export interface Body {
  id: string
  email: string
  createdAt: string
  accessToken: string
  refreshToken: string
  tokenType: string
  expiresIn: number
  deviceToken: string
  challenge: Challenge
  ticket: string
  retryAfter: number
  number: number
  line: string
  position: number
  serving: Record<string, number>
  rate: Record<string, number>
  /** Of a ticket, and the names of paused lines. */
  paused?: boolean | string[]
  until: string
  /** Absent while there is no worker. */
  eta?: number
  type: string
  title: string
  detail: string
  status: number
  code: string
  errors: { field: string; message: string }[]
}

export interface Challenge {
  kind: string
  token: string
  bits: number
  expiresIn: number
  siteKey: string
}

export interface Answer {
  status: number
  headers: Headers
  /** Empty where the answer has no body. */
  body: Body
}

export interface Call {
  body?: unknown
  headers?: Record<string, string>
  /** An access token. */
  token?: string
  signal?: AbortSignal
  /** Returns a ticket as it is [redeemed, unless there is a Prefer header]. */
  keepTicket?: boolean
}

export interface Credentials {
  email: string
  password: string
}

/** One request. Checks what holds for every answer: problems are problems, and only they are. */
export async function call(url: string, method: string, path: string, options: Call = {}): Promise<Answer> {
  const { body, headers = {}, token, signal } = options
  const response = await fetch(url + path, {
    method,
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  })
  const text = await response.text()
  const answer: Answer = {
    status: response.status,
    headers: response.headers,
    body: text === '' ? {} : JSON.parse(text),
  }
  if (answer.body.code !== undefined) assertProblem(answer, answer.status, answer.body.code)
  return answer
}

/** Checks that an answer is this problem, in the form of RFC 9457. */
export function assertProblem({ status, headers, body }: Answer, expectedStatus: number, code: string): void {
  assert.deepEqual({ status, code: body.code }, { status: expectedStatus, code })
  assert.equal(headers.get('content-type'), 'application/problem+json')
  assert.equal(body.status, status)
  assert.equal(body.type, 'about:blank')
  assert.equal(body.title, { 413: 'Content Too Large', 422: 'Unprocessable Content' }[status] ?? STATUS_CODES[status])
  assert.ok(body.detail.length > 0)
}

/** Checks the status and gives the body. */
export function expect(status: number, answer: Answer): Body {
  assert.equal(answer.status, status, JSON.stringify(answer.body))
  return answer.body
}

/** An address and a password that nobody has yet. */
export function newCredentials(): Credentials {
  return { email: `${randomUUID()}@example.test`, password: `pass phrase ${randomUUID()}` }
}

/**
 * One request that may wait for a job. A ticket is redeemed, because a busy machine may cause one
 * at any time: a worker that gets no processor for a second and a half counts as gone.
 */
async function queued(url: string, method: string, path: string, options: Call): Promise<Answer> {
  let answer = await call(url, method, path, options)
  const leaving = options.signal === undefined ? {} : { signal: options.signal }
  const asksForTicket = options.keepTicket === true || options.headers?.prefer !== undefined
  while (answer.status === 202 && !asksForTicket) answer = await redeem(url, answer.body.ticket, leaving)
  return answer
}

export const register = (url: string, body: Credentials, options: Call = {}) =>
  queued(url, 'POST', '/v1/users', { ...options, body })

export const login = (url: string, body: Credentials, options: Call = {}) =>
  queued(url, 'POST', '/v1/login', { ...options, body })

export const redeem = (url: string, ticket: string, options: Call = {}) =>
  call(url, 'POST', '/v1/tickets/redeem', { ...options, body: { ticket } })

export const refresh = (url: string, refreshToken: string) =>
  call(url, 'POST', '/v1/token/refresh', { body: { refreshToken } })

export const logout = (url: string, refreshToken: string) => call(url, 'POST', '/v1/logout', { body: { refreshToken } })

export const me = (url: string, token: string) => call(url, 'GET', '/v1/me', { token })

export const changePassword = (
  url: string,
  token: string,
  body: { currentPassword: string; newPassword: string },
  options: Call = {},
) => queued(url, 'PUT', '/v1/me/password', { ...options, token, body })

/** Asks until the gateway has the connections and the time to answer. */
export async function patiently(ask: () => Promise<Answer>): Promise<Answer> {
  const answer = await ask()
  return answer.status === 503 ? patiently(ask) : answer
}

/**
 * Repeats a request until so many were let in. Some may be refused before that: a job that was
 * added during a reading of the queue counts twice until the next one.
 */
export async function letIn(count: number, ask: () => Promise<{ status: number }>): Promise<void> {
  let admitted = 0
  const isFull = async () => {
    if ((await ask()).status === 202) admitted += 1
    return admitted === count
  }
  await until(isFull, { what: `${count} admitted requests` })
}

/** A new account, made through the gateway. */
export async function newAccount(url: string): Promise<Credentials> {
  const credentials = newCredentials()
  expect(201, await register(url, credentials))
  return credentials
}

export const keepTicket = { keepTicket: true }

export const respondAsync = { headers: { prefer: 'respond-async' } }
