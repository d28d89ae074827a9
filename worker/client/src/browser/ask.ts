/** Calls that may be answered with a ticket, as a login: sent, and followed to their answer. */
import { Following, lifetime } from './follow.js'
import type { WaitOptions } from './options.js'
import type { Sent } from './send.js'
import { StoredTicket } from './stored-ticket.js'

const HOLD_S = 20

export interface ResumeOptions extends WaitOptions {
  /** Of the call that got the ticket [/v1/login]. */
  path?: string | undefined
}

export interface AskOptions extends WaitOptions {
  path: string
  /** The HTTP method [POST]. */
  method?: string | undefined
  /** Of the request [no headers]. */
  body?: unknown
}

/**
 * Makes a call and resolves with the body of its answer; null for an answer without a body. The
 * body is sent again only while there is no ticket, or when the ticket was lost.
 *
 * @throws {@link SpillwayError}, or the reason of the signal
 */
export async function ask<T>({ method = 'POST', body, ...options }: AskOptions): Promise<T> {
  const { stored, redemption, url, lineUrl } = prepare(options.path, options)
  stored.forget()
  const request = { ...redemption, url, method, body: JSON.stringify(body) }
  return lifetime(options, (life) =>
    new Following<T>({ ...options, request, redemption, lineUrl, stored, life }).answer(),
  )
}

/**
 * Continues after a reload with the stored ticket, and resolves as the call would have. Without a
 * ticket it resolves with undefined at once.
 *
 * @throws {@link SpillwayError}, with `needsPassword` when the ticket is lost; or the reason of the
 * signal
 */
export async function resume<T>({ path = '/v1/login', ...options }: ResumeOptions = {}): Promise<T | undefined> {
  const { stored, redemption, lineUrl } = prepare(path, options)
  const ticket = await stored.read()
  if (ticket === undefined) return undefined
  return lifetime(options, (life) =>
    new Following<T>({ ...options, ticket, redemption, lineUrl, stored, life }).answer(),
  )
}

function prepare(path: string, { baseUrl = '', headers = {}, holdS = HOLD_S, storage, sessionCookie }: WaitOptions) {
  const urlOf = (path: string) => {
    const url = baseUrl.replace(/\/$/, '') + path
    // React Native has no location, and its URL ends every path with a slash.
    return /^https?:/.test(url) ? url : new URL(url, Reflect.get(globalThis, 'location')?.href).href
  }
  const url = urlOf(path)
  const credentials = sessionCookie ? 'include' : 'same-origin'
  const common = { method: 'POST', headers, holdS, credentials } as const
  const redemption: Omit<Sent, 'body'> = { ...common, url: urlOf('/v1/tickets/redeem') }
  // By its address, so that a ticket is never sent to another gateway.
  const lineUrl = urlOf('/v1/line')
  return { url, lineUrl, redemption, stored: new StoredTicket(`spillway ${url}`, storage) }
}

export interface Credentials {
  email: string
  password: string
}
export interface LoginOptions extends WaitOptions, Credentials {
  /** Of the last login to this account from this device: failures of others then do not count. */
  deviceToken?: string | undefined
}
export interface RegisterOptions extends WaitOptions, Credentials {}

export interface Tokens {
  accessToken: string
  /** Absent where it is a cookie. */
  refreshToken?: string
  tokenType: string
  /** Of the access token, in seconds. */
  expiresIn: number
  /** For the next login to this account from this device. */
  deviceToken?: string
}

export interface User {
  id: string
  email: string
}

/**
 * Logs in, however long the queue is. The password is sent once, and again only after a refusal
 * (429, 503) or when neither an answer nor a ticket is left of it.
 *
 * @throws {@link SpillwayError}: `invalid_credentials`, `invalid_request`, `gave_up`, …; or the
 * reason of the signal
 */
export function login({ email, password, deviceToken, ...options }: LoginOptions): Promise<Tokens> {
  const headers = deviceToken === undefined ? {} : { 'spillway-device': deviceToken }
  return ask({ ...options, headers: { ...options.headers, ...headers }, path: '/v1/login', body: { email, password } })
}

/**
 * Registers an account.
 *
 * @throws {@link SpillwayError}: `email_taken` also when the answer of the first attempt was lost,
 * and the account is this one's
 */
export function register({ email, password, ...options }: RegisterOptions): Promise<User> {
  return ask({ ...options, path: '/v1/users', body: { email, password } })
}
