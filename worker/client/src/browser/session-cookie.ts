/** Sessions in a cookie of the gateway (SESSION_COOKIE): shared by tabs, hidden from scripts. */
import { ask } from './ask.js'
import type { Tokens } from './login.js'
import { SpillwayError, type WaitOptions } from './options.js'

export interface LogoutOptions extends WaitOptions {
  /** Where it is no cookie. */
  refreshToken?: string | undefined
}

/** What tabs call the session: there is one for a gateway. */
export function cookieName({ baseUrl = '' }: Pick<WaitOptions, 'baseUrl'>): string {
  return `spillway cookie ${baseUrl}`
}

/**
 * Resolves with new tokens of the session in the browser's cookie, after a reload and in a new tab.
 * Resolves with undefined without a cookie, or where the session has ended. Tabs that are opened at
 * once ask one after the other.
 *
 * @throws {@link SpillwayError}, or the reason of the signal
 */
export async function restore(options: WaitOptions = {}): Promise<Tokens | undefined> {
  const refresh = () => ask<Tokens>({ ...options, sessionCookie: true, path: '/v1/token/refresh' })
  try {
    return await oneTabAtATime(cookieName(options), refresh)
  } catch (error) {
    if (error instanceof SpillwayError && error.code === 'invalid_refresh_token') return undefined
    throw error
  }
}

/**
 * Ends the session. Access tokens of it open nothing at the gateway from then on.
 *
 * @throws {@link SpillwayError}, or the reason of the signal
 */
export async function logout({ refreshToken, ...options }: LogoutOptions = {}): Promise<void> {
  const how = refreshToken === undefined ? { sessionCookie: true } : { body: { refreshToken } }
  await ask({ ...options, ...how, path: '/v1/logout' })
}

/** What is used of the Web Locks API. */
interface Locks {
  request(name: string, whileHeld: () => Promise<void>): Promise<void>
}

/** Works while no other tab works under this name, nor a while after. At once without Web Locks. */
export async function oneTabAtATime<T>(name: string, work: () => Promise<T>, afterMs = 0): Promise<T> {
  const locks: Locks | undefined = Reflect.get(globalThis, 'navigator')?.locks
  if (locks === undefined) return work()
  return new Promise((resolve, reject) => {
    const whileHeld = async () => {
      await work().then(resolve, reject)
      await new Promise((later) => setTimeout(later, afterMs))
    }
    locks.request(name, whileHeld).catch(reject)
  })
}
