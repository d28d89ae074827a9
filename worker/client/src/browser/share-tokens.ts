/** The tokens of a session in all tabs of an origin: one tab refreshes, and the others are given what it got. */
import { ask } from './ask.js'
import type { Tokens } from './login.js'
import type { WaitOptions } from './options.js'
import { cookieName, oneTabAtATime } from './session-cookie.js'

export interface ShareOptions extends WaitOptions {
  /** Is called with the new tokens in every tab, whichever of them refreshed. */
  onTokens?: ((tokens: Tokens) => void) | undefined
}

export interface SharedTokens {
  /** The latest ones. */
  current(): Tokens
  /**
   * Resolves with tokens that are newer. Of all tabs that have these tokens, one sends a request.
   *
   * @param used those whose access token has expired or was refused [the latest ones]
   * @throws {@link SpillwayError}: `invalid_refresh_token` once the session has ended
   */
  refresh(used?: Pick<Tokens, 'accessToken'>): Promise<Tokens>
  /** Listens to other tabs no more. */
  close(): void
}

/** Other tabs take what was announced before they get the lock, in milliseconds. The gateway's grace covers a tab that takes longer. */
const ANNOUNCED_MS = 100

/**
 * Shares the tokens of a login between tabs. Call it in every tab as soon as it has them: a tab that does not listen would show a token that
 * another has replaced. Scripts of the same origin can read them, as they can read whatever a page keeps. Without Web Locks or BroadcastChannel
 * each tab refreshes by itself.
 */
export function shareTokens(tokens: Tokens, { onTokens, ...options }: ShareOptions = {}): SharedTokens {
  const { refreshToken: kept } = tokens
  // All tokens of a session begin with its name. A browser has one cookie for a gateway.
  const name = kept === undefined ? cookieName(options) : `spillway ${kept.split('.', 2).join('.')}`
  const channel = typeof BroadcastChannel === 'undefined' ? undefined : new BroadcastChannel(name)
  let current = tokens
  let running: Promise<Tokens> | undefined

  function take(next: Tokens): void {
    current = next
    onTokens?.(next)
  }

  if (channel !== undefined) channel.onmessage = (event) => take(Object(event).data)

  const isLatest = ({ accessToken }: Pick<Tokens, 'accessToken'>) => current.accessToken === accessToken

  async function refreshUnlessNewer(used: Pick<Tokens, 'accessToken'>): Promise<void> {
    if (!isLatest(used)) return
    const { refreshToken } = current
    const how =
      refreshToken === undefined ? { ...options, sessionCookie: true } : { ...options, body: { refreshToken } }
    const next = await ask<Tokens>({ ...how, path: '/v1/token/refresh' })
    channel?.postMessage(next)
    take(next)
  }

  async function refresh(used: Pick<Tokens, 'accessToken'>): Promise<Tokens> {
    await oneTabAtATime(name, () => refreshUnlessNewer(used), ANNOUNCED_MS)
    return current
  }

  return {
    current: () => current,
    async refresh(used = current) {
      if (!isLatest(used)) return current
      running ??= refresh(used).finally(() => {
        running = undefined
      })
      return running
    },
    close: () => channel?.close(),
  }
}
