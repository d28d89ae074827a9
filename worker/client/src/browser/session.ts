/** Sessions in a cookie of the gateway (SESSION_COOKIE), and their tokens in all tabs. */
import { ask, type Tokens } from './ask.js'
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
 * Resolves with new tokens of the session in the browser's cookie; with undefined without a cookie,
 * or where the session has ended. Tabs that are opened at once ask one after the other.
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

// The tokens of a session in all tabs of an origin: one tab refreshes them for all.

export interface ShareOptions extends WaitOptions {
  /** Is called with the new tokens in every tab, whichever of them refreshed. */
  onTokens?: ((tokens: Tokens) => void) | undefined
}

/** Time (ms) in which other tabs hear new tokens. The gateway's grace covers a slower tab. */
const ANNOUNCED_MS = 100

/**
 * Shares the tokens of a login between tabs. Call it in every tab as soon as it has them: a tab
 * that does not listen would use a token that another has replaced. Scripts of the same origin can
 * read them. Without Web Locks or BroadcastChannel each tab refreshes by itself.
 */
export function shareTokens(tokens: Tokens, options: ShareOptions = {}): SharedTokens {
  return new SharedTokens(tokens, options)
}

export class SharedTokens {
  readonly #name: string
  readonly #options: ShareOptions
  readonly #channel: InstanceType<typeof BroadcastChannel> | undefined
  #current: Tokens
  #running: Promise<Tokens> | undefined

  constructor(tokens: Tokens, options: ShareOptions) {
    const { refreshToken } = tokens
    // All tokens of a session begin with its name. A browser has one cookie for a gateway.
    this.#name = refreshToken === undefined ? cookieName(options) : `spillway ${refreshToken.split('.', 2).join('.')}`
    this.#options = options
    this.#current = tokens
    this.#channel = typeof BroadcastChannel === 'undefined' ? undefined : new BroadcastChannel(this.#name)
    if (this.#channel !== undefined) this.#channel.onmessage = (event) => this.#take(Object(event).data)
  }

  /** The latest ones. */
  current(): Tokens {
    return this.#current
  }

  /**
   * Resolves with tokens that are newer. Of all tabs that have these tokens, one sends a request.
   *
   * @param used those whose access token has expired or was refused [the latest ones]
   * @throws {@link SpillwayError}: `invalid_refresh_token` once the session has ended
   */
  async refresh(used: Pick<Tokens, 'accessToken'> = this.#current): Promise<Tokens> {
    if (!this.#isLatest(used)) return this.#current
    this.#running ??= this.#inTurn(used).finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  /** Listens to other tabs no more. */
  close(): void {
    this.#channel?.close()
  }

  #isLatest({ accessToken }: Pick<Tokens, 'accessToken'>): boolean {
    return this.#current.accessToken === accessToken
  }

  async #inTurn(used: Pick<Tokens, 'accessToken'>): Promise<Tokens> {
    await oneTabAtATime(this.#name, () => this.#refreshUnlessNewer(used), ANNOUNCED_MS)
    return this.#current
  }

  #take(next: Tokens): void {
    this.#current = next
    this.#options.onTokens?.(next)
  }

  async #refreshUnlessNewer(used: Pick<Tokens, 'accessToken'>): Promise<void> {
    if (!this.#isLatest(used)) return
    const { refreshToken } = this.#current
    const how = refreshToken === undefined ? { sessionCookie: true } : { body: { refreshToken } }
    const { onTokens: _own, ...options } = this.#options
    const next = await ask<Tokens>({ ...options, ...how, path: '/v1/token/refresh' })
    this.#channel?.postMessage(next)
    this.#take(next)
  }
}
