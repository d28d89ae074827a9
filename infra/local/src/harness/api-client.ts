// The client of the public API for tests, load and chaos. It never rejects: what goes wrong is an
// answer without a status.
import http, { type IncomingHttpHeaders } from 'node:http'
import https, { type AgentOptions } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'

/** Unanswered requests end after this: common gateways in front of an API are no more patient. */
export const TIMEOUT_MS = 10_000

/** Each body has some of them. */
interface AnswerBody {
  accessToken?: string
  refreshToken?: string
  deviceToken?: string
  ticket?: string
  number?: number
  line?: string
  eta?: number
  code?: string
}

export interface RequestOptions {
  headers?: Record<string, string>
  signal?: AbortSignal
  timeoutMs?: number
  /** Repeats a request once if the server just closed the kept connection, as browsers do [no]. */
  retriesStale?: boolean
}

export interface Credentials {
  email: string
  password: string
}

export type ApiClient = ReturnType<typeof createApiClient>

export const respondAsync = { headers: { prefer: 'respond-async' } }

export function createApiClient(
  url: string,
  {
    timeoutMs = TIMEOUT_MS,
    connections = { keepAlive: true },
  }: { timeoutMs?: number; connections?: AgentOptions } = {},
) {
  const agent = url.startsWith('https:') ? new https.Agent(connections) : new http.Agent(connections)
  const withBody = (method: string) => (path: string, body: unknown, options?: RequestOptions) =>
    send(agent, method, url + path, JSON.stringify(body), { timeoutMs, ...options })
  const post = withBody('POST')
  return {
    get: (path: string, options?: RequestOptions) =>
      send(agent, 'GET', url + path, undefined, { timeoutMs, ...options }),
    post,
    put: withBody('PUT'),
    register: (credentials: Credentials, options?: RequestOptions) => post('/v1/users', credentials, options),
    login: (credentials: Credentials, options?: RequestOptions) => post('/v1/login', credentials, options),
    redeem: (ticket: unknown, options?: RequestOptions) => post('/v1/tickets/redeem', { ticket }, options),
    /** Ends its connections and open requests. Idle connections do not keep a process. */
    close: (): void => agent.destroy(),
  }
}

const sharedAgent = new http.Agent({ keepAlive: true })

/** A gateway is still in time after its own hold, and some seconds of a machine that is busy. */
const ASKED_TIMEOUT_MS = 15_000

/** One request, on connections that all such requests share: POST with a body, otherwise GET. */
export function ask(url: string, path: string, { body, ...given }: RequestOptions & { body?: unknown } = {}) {
  const options = { timeoutMs: ASKED_TIMEOUT_MS, ...given }
  return body === undefined
    ? send(sharedAgent, 'GET', url + path, undefined, options)
    : send(sharedAgent, 'POST', url + path, JSON.stringify(body), options)
}

interface Redeeming {
  redeem(ticket: string): Promise<ApiAnswer>
  /** Nothing is redeemed after this, by `performance.now()`. */
  endMs?: number
}

/** Redeems the ticket of an answer, as Retry-After asks, until it is no longer pending; gives the last answer. */
export async function redeemUntilAnswered(
  first: ApiAnswer,
  { redeem, endMs = Number.POSITIVE_INFINITY }: Redeeming,
): Promise<ApiAnswer> {
  let answer = first
  let { ticket } = first.body
  while (ticket !== undefined && answer.status === 202 && performance.now() < endMs) {
    await sleep(answer.retryAfterMs)
    answer = await redeem(ticket)
    ticket = answer.body.ticket ?? ticket
  }
  return answer
}

export type ApiAnswer = ReturnType<typeof answerOf>

/** @param status 0 without an answer; the reason is `timeout` or a code such as `ECONNRESET` */
function answerOf(status: number, reason: string, headers: IncomingHttpHeaders, text: string, tookMs: number) {
  const failure: 'timeout' | 'error' | undefined = status > 0 ? undefined : reason === 'timeout' ? 'timeout' : 'error'
  return {
    status,
    failure,
    reason,
    headers,
    text,
    tookMs,
    /** Parsed on demand: most load asks for the status alone. Empty without JSON. */
    get body(): AnswerBody {
      try {
        return JSON.parse(text) ?? {}
      } catch {
        return {}
      }
    },
    /** What Retry-After asks for; 1,000 where it is missing. */
    get retryAfterMs(): number {
      return Number(headers['retry-after'] ?? 1) * 1_000
    },
  }
}

async function send(agent: http.Agent, method: string, url: string, body: string | undefined, options: RequestOptions) {
  const { isStale, answer } = await attempt(agent, method, url, body, options)
  return isStale && options.retriesStale ? (await attempt(agent, method, url, body, options)).answer : answer
}

function attempt(agent: http.Agent, method: string, url: string, body: string | undefined, options: RequestOptions) {
  const { signal, timeoutMs = TIMEOUT_MS } = options
  const headers =
    body === undefined
      ? { ...options.headers }
      : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...options.headers }
  const sentMs = performance.now()
  const sent = { agent, method, headers, ...(signal && { signal }) }
  return new Promise<{ isStale: boolean; answer: ApiAnswer }>((resolve) => {
    let reason = ''
    const outgoing = url.startsWith('https:') ? https.request(url, sent) : http.request(url, sent)
    const settle = (status: number, text: string, headers: IncomingHttpHeaders) => {
      clearTimeout(timer)
      const isStale = status === 0 && outgoing.reusedSocket && reason === 'ECONNRESET' && !signal?.aborted
      resolve({ isStale, answer: answerOf(status, reason, headers, text, performance.now() - sentMs) })
    }
    const giveUp = (why: string) => {
      reason ||= why
      outgoing.destroy()
    }
    const failed = (error: NodeJS.ErrnoException) => giveUp(error.code ?? error.name)
    const timer = setTimeout(giveUp, timeoutMs, 'timeout')
    outgoing.on('error', failed)
    outgoing.on('response', (incoming) => {
      let text = ''
      incoming.on('error', failed)
      incoming.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      incoming.on('end', () => settle(incoming.statusCode ?? 0, text, incoming.headers))
    })
    // After the end of an answer this changes nothing.
    outgoing.on('close', () => {
      reason ||= 'closed'
      settle(0, '', {})
    })
    outgoing.end(body)
  })
}

/**
 * Adds up the series of a metric that hold one of the given labels, such as `job="verify"`. Without
 * a label, it is the one series that has none; rejects where there is no such series.
 */
export async function readMetric(opsUrl: string, name: string, ...labels: readonly string[]): Promise<number> {
  const page = (await (await fetch(`${opsUrl}/metrics`)).text()).split('\n')
  const isAsked = (line: string): boolean =>
    labels.length === 0
      ? line.startsWith(`${name} `)
      : line.startsWith(`${name}{`) && labels.some((label) => line.includes(label))
  const values = page.filter(isAsked).map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)))
  if (labels.length === 0 && values.length === 0) throw new Error(`${opsUrl} has no ${name}`)
  return values.reduce((sum, value) => sum + value, 0)
}
