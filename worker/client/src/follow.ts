/** `@spillway/client/follow`, for pages: logs in, waits in line, keeps the session across reloads and tabs. */

export interface Progress {
  /**
   * - `sending`: the gateway has the request, and has given no ticket yet
   * - `queued`: there is a ticket, and the client waits for its result
   * - `paused`: the same, while operators have paused the queue
   * - `busy`: the gateway refused for the moment (429, 503) or failed; `code` says why
   * - `offline`: a request got no answer
   */
  state: 'sending' | 'queued' | 'paused' | 'busy' | 'offline'
  /** How many are ahead, and seconds until the expected result, if the gateway sent them. */
  position: number | undefined
  etaS: number | undefined
  code: string | undefined
  /** The request id of the last answer: a support code, by which operators find the request. */
  requestId: string | undefined
}

export interface FollowOptions {
  /** URL of the gateway, with a path if it is behind one [the origin of the page]. */
  baseUrl?: string
  /** Whether cookies are sent to a gateway of another origin, for `SESSION_COOKIE` [false]. */
  sessionCookie?: boolean
  /** Called at every step. An error that it throws ends the call. */
  onProgress?: (progress: Progress) => void
  /** Ends the call with the signal's reason, and forgets its ticket. */
  signal?: AbortSignal | undefined
  /** Headers of every request. */
  headers?: Readonly<Record<string, string>>
}

export type Credentials = Record<'email' | 'password', string>
/** Options of `ask` [POST without a body]; the body is sent as JSON. */
export type AskOptions = FollowOptions & { method?: string; body?: unknown }
/** Options of a session [the browser's cookie, which needs `SESSION_COOKIE` at the gateway] */
export type SessionOptions = FollowOptions & { refreshToken?: string }

export interface Tokens {
  accessToken: string
  /** Absent if it is in a cookie. */
  refreshToken?: string
  tokenType: string
  /** Life of the access token in seconds. */
  expiresIn: number
  /** For the header `Spillway-Device` of the next login to this account on this device. */
  deviceToken?: string
}

/** The fields that are read from a body, also of a problem (RFC 9457). */
interface Body extends Partial<Ticket> {
  code?: string
  detail?: string
  requestId?: string
  retryAfter?: number
  eta?: number
}

interface Answer<T = unknown> {
  /** 0: there was no answer, or the answer was not a gateway's. */
  status: number
  body: Body & T
  retryAfterMs?: number
  requestId?: string | undefined
}

/** How far a ticket is from its turn. */
interface Turn {
  position?: number
  /** When its result is expected, in epoch milliseconds. */
  etaAt?: number | undefined
  paused?: boolean
}

interface Ticket extends Turn {
  ticket: string
  /** When to redeem it, in epoch milliseconds. */
  redeemAt: number
  /** Its place in the line. */
  number?: number
}

export class SpillwayError extends Error {
  override readonly name = 'SpillwayError'
  /** The code of the gateway's problem, `gave_up`, or `unexpected_answer`. */
  readonly code: string
  /** The gateway's problem, for instance with `requestId`, or `errors` of `invalid_request`. */
  readonly problem: Body
  /** Whether a kept ticket has ended: the call can be made again with the password. */
  readonly needsPassword: boolean

  constructor(code: string, problem: Body = {}, needsPassword = false) {
    super(problem.detail ?? code)
    this.code = code
    this.problem = problem
    this.needsPassword = needsPassword
  }
}

/**
 * Logs in, however long the line is. The password stays in memory. It is sent once, and again only
 * after a refusal, a lost first answer, or the end of its ticket.
 */
export function login({ email, password, ...options }: FollowOptions & Credentials): Promise<Tokens> {
  return ask('/v1/login', { ...options, body: { email, password } })
}

/** Makes a call that may be answered with a ticket. Resolves with the body of its result. */
export async function ask<T>(path: string, { method = 'POST', body, ...options }: AskOptions = {}): Promise<T> {
  return await follow<T>(path, options, (life) => send<T>(path, options, life, method, body))
}

/**
 * Continues a call after a reload, with the ticket in sessionStorage. Resolves as the call would
 * have, or with undefined if there is no ticket.
 */
export async function resume<T = Tokens>(options: FollowOptions = {}, path = '/v1/login'): Promise<T | undefined> {
  const kept = keptTicket(path, options)
  return kept === undefined ? undefined : await follow<T>(path, options, undefined, kept)
}

const SESSION_MS = 30_000

/**
 * Resolves with new tokens of a session, or with undefined if the session has ended. Tabs of an
 * origin refresh one after the other. Rejects with `gave_up` after 30 s.
 */
export async function refresh(options: SessionOptions = {}): Promise<Tokens | undefined> {
  const path = '/v1/token/refresh'
  return await within(SESSION_MS, options.signal, (signal) =>
    oneTabAtATime(urlOf(path, options), signal, () =>
      ask<Tokens>(path, { ...ofSession(options), signal }).catch((error: SpillwayError) => {
        if (error.code !== 'invalid_refresh_token') throw error
        return undefined
      }),
    ),
  )
}

/** Ends a session. Rejects with `gave_up` after 30 s. */
export async function logout(options: SessionOptions = {}): Promise<void> {
  await within(SESSION_MS, options.signal, (signal) => ask('/v1/logout', { ...ofSession(options), signal }))
}

function ofSession({ refreshToken, ...options }: SessionOptions) {
  return refreshToken === undefined ? { ...options, sessionCookie: true } : { ...options, body: { refreshToken } }
}

/** After this time (ms) another tab counts as asleep. Less than the gateway's grace period. */
const LOCK_MS = 5_000

/** Without a lock if the page has no Web Locks (plain HTTP, a sandboxed frame). */
async function oneTabAtATime<T>(name: string, life: AbortSignal, work: () => Promise<T>): Promise<T> {
  let working: Promise<T> | undefined
  const begin = () => {
    working ??= work()
    return working
  }
  const locked = (signal: AbortSignal) => Reflect.get(globalThis, 'navigator').locks.request(name, { signal }, begin)
  await within<void>(LOCK_MS, life, locked).catch(() => undefined)
  return life.aborted ? Promise.reject(life.reason) : begin()
}

// A call, from its first request to its result.

/** After these statuses the same request may succeed. */
const PASSING = [0, 408, 425, 429, 500, 502, 503, 504]
/** The longest time (ms) between redemptions: each restarts a request that was lost with Redis. */
const REDEEM_EVERY_MS = 60_000

async function follow<T>(path: string, options: FollowOptions, begin?: Work<Answer<T>>, ticket?: Ticket): Promise<T> {
  const { onProgress, signal: life = new AbortController().signal } = options
  let last: Answer<T> | undefined
  let failures = 0

  function keep(next: Ticket | undefined): void {
    ticket = next
    keepTicket(path, options, next)
  }

  function tell(state: Progress['state']): void {
    const etaS = ticket?.etaAt && Math.max(0, Math.round((ticket.etaAt - Date.now()) / 1_000))
    const told = { position: ticket?.position, etaS, code: last?.body.code, requestId: last?.requestId }
    onProgress?.({ state: state === 'queued' && ticket?.paused ? 'paused' : state, ...told })
  }

  async function wait(ms: number, state: Progress['state']): Promise<void> {
    tell(state)
    await pause(ms, life)
  }

  async function next(): Promise<Answer<T>> {
    tell(ticket ? 'queued' : 'sending')
    if (begin && !ticket) return await begin(life)
    return await send<T>('/v1/tickets/redeem', options, life, 'POST', { ticket: ticket?.ticket })
  }

  /** Waits as the gateway asks, and then watches the line until the turn is near. */
  async function approach(pauseMs: number): Promise<void> {
    await wait(pauseMs, 'queued')
    const redeemBy = performance.now() + REDEEM_EVERY_MS
    while (ticket && pauseFar(ticket) !== undefined && performance.now() < redeemBy) {
      const turn = await turnOf(ticket, options, life)
      const ms = turn && pauseFar(turn)
      if (ms === undefined) return
      keep({ ...ticket, ...turn, redeemAt: Date.now() + ms })
      await wait(ms, 'queued')
    }
  }

  try {
    if (ticket) await wait(Math.min(Math.max(ticket.redeemAt - Date.now(), 0), TICKET_MOST_MS), 'queued')
    for (;;) {
      last = await next()
      const { status, body, retryAfterMs } = last
      const pauseMs = pauseAfter(status, retryAfterMs, failures)
      failures = retryAfterMs === undefined ? failures + 1 : 0
      if (status === 202 && body.ticket !== undefined) {
        const etaAt = body.eta === undefined ? undefined : Date.now() + body.eta * 1_000
        keep({ ...body, ticket: body.ticket, etaAt, redeemAt: Date.now() + pauseMs })
        await approach(pauseMs)
      } else if (ticket && hasEnded(body.code)) {
        keep(undefined)
        if (!begin) throw new SpillwayError(body.code, body, true)
        await wait(pauseMs, 'busy')
      } else if (PASSING.includes(status)) await wait(pauseMs, status === 0 ? 'offline' : 'busy')
      else if (status < 300) return body
      else throw new SpillwayError(body.code ?? 'unexpected_answer', body)
    }
  } finally {
    keep(undefined)
  }
}

/** The ticket of this page, by the URL of the call: a ticket is never sent to another gateway. */
function keptTicket(path: string, options: FollowOptions): Ticket | undefined {
  try {
    const kept = JSON.parse(Reflect.get(globalThis, 'sessionStorage').getItem(urlOf(path, options)))
    return typeof kept.ticket === 'string' ? kept : undefined
  } catch {
    return undefined
  }
}

/** Keeps the ticket only in memory if the storage is forbidden or full. */
function keepTicket(path: string, options: FollowOptions, ticket: Ticket | undefined): void {
  try {
    const storage = Reflect.get(globalThis, 'sessionStorage')
    if (ticket === undefined) storage.removeItem(urlOf(path, options))
    else storage.setItem(urlOf(path, options), JSON.stringify(ticket))
  } catch {}
}

/** Whole seconds that the gateway may hold a request, bounded by its LOGIN_WAIT_MS. */
const HOLD_S = 20
/** Time (ms) after which a connection counts as lost. */
const ANSWER_MS = 35_000

/** Rejects only with the reason of the signal. */
async function send<T>(path: string, options: FollowOptions, life: AbortSignal, method = 'GET', sent?: unknown) {
  const { headers, sessionCookie } = options
  const ours = method === 'GET' ? {} : { 'content-type': 'application/json', prefer: `wait=${HOLD_S}` }
  const request = async (signal: AbortSignal): Promise<Answer<T>> => {
    const response = await fetch(urlOf(path, options), {
      method,
      headers: { ...headers, ...ours },
      ...(sent !== undefined && { body: JSON.stringify(sent) }),
      credentials: sessionCookie ? 'include' : 'same-origin',
      // Gateways never redirect, and a password must not go to another server.
      redirect: 'manual',
      signal,
    })
    const { status } = response
    const body: Answer<T>['body'] = Object(status === 204 ? undefined : await response.json())
    // Pages of other origins do not see the header.
    const retryAfterMs = Number(response.headers.get('retry-after') ?? body.retryAfter ?? Number.NaN) * 1_000
    const requestId = response.headers.get('x-request-id') ?? undefined
    return { status, body, requestId, ...(retryAfterMs >= 0 && { retryAfterMs }) }
  }
  return await within(ANSWER_MS, life, request).catch((): Answer<T> => {
    if (life.aborted) throw life.reason
    return { status: 0, body: Object() }
  })
}

function urlOf(path: string, { baseUrl = '' }: FollowOptions): string {
  return new URL(baseUrl.replace(/\/$/, '') + path, Reflect.get(globalThis, 'location')?.href).href
}

type Work<T> = (life: AbortSignal) => Promise<T>

/** Runs work with a signal that fires with another one, or as `gave_up` after a time. */
async function within<T>(timeoutMs: number, signal: AbortSignal | undefined, work: Work<T>): Promise<T> {
  const end = new AbortController()
  const abort = () => end.abort(signal?.reason)
  if (signal?.aborted) throw signal.reason
  signal?.addEventListener('abort', abort)
  const timer = setTimeout(() => end.abort(new SpillwayError('gave_up')), timeoutMs)
  try {
    return await work(end.signal)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}

// The line, and pauses in milliseconds: with jitter, so that clients do not come back together.

/** The least time between requests, whatever the server says. */
const LEAST_MS = 1_000
/** Longest pause before a redemption: an early one is harmless, one after the expiry is not. */
const TICKET_MOST_MS = 30_000
/** A turn within this time is near: the ticket is redeemed, and the request held. */
const NEAR_MS = 10_000

/** @param failures requests in a row that got no ticket and no Retry-After */
function pauseAfter(status: number, retryAfterMs: number | undefined, failures: number): number {
  if (retryAfterMs === undefined) return LEAST_MS + Math.random() * Math.min(LEAST_MS * 2 ** failures, 10_000)
  const asked = Math.max(retryAfterMs, LEAST_MS)
  return status === 202 ? Math.min(asked, TICKET_MOST_MS) * (1 + Math.random() / 4) : asked * (1 + Math.random() / 2)
}

/** Half of the time until the turn, because workers may join. Undefined near the turn. */
function pauseFar({ etaAt = Number.POSITIVE_INFINITY }: Turn): number | undefined {
  const leftMs = etaAt - Date.now() - NEAR_MS
  return leftMs > 0 ? Math.min(Math.max(leftMs / 2, 2_000), NEAR_MS) * (1 + Math.random() / 4) : undefined
}

/** Whether the first request must be sent again. `ticket_used` may follow a lost answer, too. */
function hasEnded(code: string | undefined): code is string {
  return /^(ticket_(expired|used)|hash_replaced|invalid_ticket)$/.test(code ?? '')
}

/** Undefined if the line does not say, and at the turn of the ticket. */
async function turnOf({ number }: Ticket, options: FollowOptions, life: AbortSignal): Promise<Turn | undefined> {
  if (number === undefined) return undefined
  const { body } = await send<{ serving?: number; rate?: number }>('/v1/line', options, life)
  const { serving, rate, paused = false } = body
  if (serving === undefined || rate === undefined || number <= serving) return undefined
  const position = number - serving
  return { position, paused, etaAt: paused || rate === 0 ? undefined : Date.now() + (position * 1_000) / rate }
}

/** Rejects with the reason of the signal. */
async function pause(ms: number, life: AbortSignal): Promise<void> {
  await within(ms, life, (end) => new Promise((resolve) => end.addEventListener('abort', resolve)))
  if (life.aborted) throw life.reason
}
