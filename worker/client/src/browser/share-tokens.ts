/** The tokens of a session in all tabs of an origin: one tab refreshes, and the others are given what it got. */
import { ask } from './ask.js'
import type { Tokens } from './login.js'
import type { WaitOptions } from './options.js'

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
  refresh(used?: Pick<Tokens, 'refreshToken'>): Promise<Tokens>
  /** Listens to other tabs no more. */
  close(): void
}

/** Other tabs take what was announced before they get the lock, in milliseconds. The gateway's grace covers a tab that takes longer. */
const ANNOUNCED_MS = 100

/** What is used of the Web Locks API. */
interface Locks {
  request(name: string, whileHeld: () => Promise<void>): Promise<void>
}

/**
 * Shares the tokens of a login between tabs. Call it in every tab as soon as it has them: a tab that does not listen would show a token that
 * another has replaced. Scripts of the same origin can read them, as they can read whatever a page keeps. Without Web Locks or BroadcastChannel
 * each tab refreshes by itself.
 */
export function shareTokens(tokens: Tokens, { onTokens, ...options }: ShareOptions = {}): SharedTokens {
  // All tokens of a session begin with its name.
  const name = `spillway ${tokens.refreshToken.split('.', 2).join('.')}`
  const channel = typeof BroadcastChannel === 'undefined' ? undefined : new BroadcastChannel(name)
  let current = tokens
  let running: Promise<Tokens> | undefined

  function take(next: Tokens): void {
    current = next
    onTokens?.(next)
  }

  if (channel !== undefined) channel.onmessage = (event) => take(Object(event).data)

  // Access tokens of one second may be the same.
  const isLatest = ({ refreshToken }: Pick<Tokens, 'refreshToken'>) => current.refreshToken === refreshToken

  async function refreshUnlessNewer(used: Pick<Tokens, 'refreshToken'>): Promise<void> {
    if (!isLatest(used)) return
    const next = await ask<Tokens>({
      ...options,
      path: '/v1/token/refresh',
      body: { refreshToken: current.refreshToken },
    })
    channel?.postMessage(next)
    take(next)
  }

  async function refresh(used: Pick<Tokens, 'refreshToken'>): Promise<Tokens> {
    const locks: Locks | undefined = Reflect.get(globalThis, 'navigator')?.locks
    if (locks === undefined) await refreshUnlessNewer(used)
    else {
      await new Promise<void>((resolve, reject) => {
        const whileHeld = async () => {
          await refreshUnlessNewer(used).then(resolve, reject)
          await new Promise((later) => setTimeout(later, ANNOUNCED_MS))
        }
        locks.request(name, whileHeld).catch(reject)
      })
    }
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
