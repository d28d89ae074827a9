/** Logging in and registering, as calls that are waited for. */
import { ask } from './ask.js'
import type { WaitOptions } from './options.js'

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
