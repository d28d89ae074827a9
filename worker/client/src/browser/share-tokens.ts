/** The tokens of a session in all tabs of an origin: one tab refreshes them for all. */
import { ask } from './ask.js'
import type { Tokens } from './login.js'
import type { WaitOptions } from './options.js'
import { cookieName, oneTabAtATime } from './session-cookie.js'

export interface ShareOptions extends WaitOptions {
  /** Is called with the new tokens in every tab, whichever of them refreshed. */
  onTokens?: ((tokens: Tokens) => void) | undefined
}

/** Time (ms) in which other tabs hear new tokens. The gateway's grace covers a slower tab. */
const ANNOUNCED_MS = 100

/**
 * Shares the tokens of a login between tabs. Call it in every tab as soon as it has them: a tab
 * that does not listen would show a token that another has replaced. Scripts of the same origin can
 * read them, as they can read whatever a page keeps. Without Web Locks or BroadcastChannel each tab
 * refreshes by itself.
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
