// A client of the public API, as a program on another machine would write it.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
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
  ticket: string
  retryAfter: number
  number: number
  position: number
  serving: number
  rate: number
  /** Of a ticket, and of the line. */
  paused?: boolean
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

export interface Answer {
  status: number
  headers: Headers
  /** Empty where the answer has no body. */
  body: Body
}

/** An answer and its id, which is left out of a problem's body. */
export interface Told extends Answer {
  requestId: string
}

/** Replaces a password. */
export const NEXT = 'another pass phrase entirely'

export interface Call {
  body?: unknown
  headers?: Record<string, string>
  /** An access token. */
  token?: string
  signal?: AbortSignal
  /** Returns a ticket [redeems it, unless there is a Prefer header]. */
  keepsTicket?: boolean
  /** Returns the first answer, whatever it is. */
  asIs?: boolean
}

export interface Credentials {
  email: string
  password: string
}

/** A client of one gateway, by the url of its public port or of its port for services. */
export class Client {
  readonly url: string

  constructor(url: string) {
    this.url = url
  }

  /**
   * One request. A ticket is redeemed, and a `busy` or `unavailable` repeated, because a busy machine
   * may cause them at any time: a worker that gets no processor for a second and a half counts as
   * gone, a gateway that gets too little refuses some requests, and PostgreSQL or Redis is given up
   * after two seconds. Checks what holds for every answer: problems are problems, and only they are.
   */
  async call(method: string, path: string, options: Call = {}): Promise<Told> {
    const { body, headers = {}, token, signal, keepsTicket = headers.prefer !== undefined } = options
    const response = await fetch(this.url + path, {
      method,
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
    const json = await response.text()
    const { requestId = response.headers.get('x-request-id'), ...told } = json === '' ? {} : JSON.parse(json)
    const answer: Told = { status: response.status, headers: response.headers, body: told, requestId }
    assert.match(requestId, /^[\w.-]{1,64}$/)
    assert.equal(response.headers.get('x-request-id'), requestId)
    if (answer.body.code !== undefined) assertProblem(answer, answer.status, answer.body.code)
    if (options.asIs === true) return answer
    if (answer.status === 202) return keepsTicket ? answer : this.redeem(answer.body.ticket, options)
    if (!['busy', 'unavailable'].includes(answer.body.code)) return answer
    await sleep(1_000 * Number(answer.headers.get('retry-after')))
    return this.call(method, path, options)
  }

  register(body: Credentials, options?: Call): Promise<Told> {
    return this.call('POST', '/v1/users', { ...options, body })
  }

  login(body: Credentials, options?: Call): Promise<Told> {
    return this.call('POST', '/v1/login', { ...options, body })
  }

  redeem(ticket: string, options?: Call): Promise<Told> {
    return this.call('POST', '/v1/tickets/redeem', { ...options, body: { ticket } })
  }

  refresh(refreshToken: string, options?: Call): Promise<Told> {
    return this.call('POST', '/v1/token/refresh', { ...options, body: { refreshToken } })
  }

  logout(refreshToken: string): Promise<Told> {
    return this.call('POST', '/v1/logout', { body: { refreshToken } })
  }

  me(token: string, options?: Call): Promise<Told> {
    return this.call('GET', '/v1/me', { ...options, token })
  }

  changePassword(token: string, currentPassword: string, newPassword = NEXT, options?: Call): Promise<Told> {
    return this.call('PUT', '/v1/me/password', { ...options, token, body: { currentPassword, newPassword } })
  }

  changeEmail(token: string, newEmail: string, password: string, options?: Call): Promise<Told> {
    return this.call('PUT', '/v1/me/email', { ...options, token, body: { newEmail, password } })
  }

  verifyPassword(token: string, password: string, options?: Call): Promise<Told> {
    return this.call('POST', '/v1/me/password/verify', { ...options, token, body: { password } })
  }

  deleteAccount(token: string, password: string, options?: Call): Promise<Told> {
    return this.call('POST', '/v1/me/delete', { ...options, token, body: { password } })
  }

  forgotten(email: string, options?: Call): Promise<Told> {
    return this.call('POST', '/v1/password/forgotten', { ...options, body: { email } })
  }

  resetPassword(token: string, newPassword = NEXT, options?: Call): Promise<Told> {
    return this.call('POST', '/v1/password/reset', { ...options, body: { token, newPassword } })
  }

  confirmEmail(token: string): Promise<Told> {
    return this.call('POST', '/v1/email/confirm', { body: { token } })
  }

  async newAccount(): Promise<Credentials> {
    const credentials = newCredentials()
    expect(201, await this.register(credentials))
    return credentials
  }

  /** A new account, and the tokens of its first login. */
  async signedIn(): Promise<Body & { account: Credentials }> {
    const account = await this.newAccount()
    return { account, ...expect(200, await this.login(account)) }
  }
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

/** `fetch`, of what is there: a busy machine may make a part of the service unavailable for a moment. */
export async function fetchPatiently(url: string, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init)
  if (response.status !== 503) return response
  await sleep(1_000 * Number(response.headers.get('retry-after')))
  return fetchPatiently(url, init)
}

/** So many requests at once. */
export function atOnce<T>(count: number, ask: (n: number) => T | Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, n) => ask(n)))
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

export const keepTicket = { keepsTicket: true }

export const asIs = { asIs: true }

export const respondAsync = { headers: { prefer: 'respond-async' } }

/** Sends bytes as they are on a connection of their own, and reads what comes until it ends. */
export async function exchange(url: string, bytes: string | readonly (string | Uint8Array)[]): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  for (const part of [bytes].flat()) socket.write(part)
  return await text(socket)
}
