/** One request, and what came of it. */

/** Time (ms) beyond the hold of a request, after which its connection is taken to be lost. */
const SLACK_MS = 15_000

export interface Sent {
  url: string
  method: string
  /** JSON; undefined: no body. */
  body: string | undefined
  credentials: 'include' | 'same-origin'
  headers: Readonly<Record<string, string>>
  holdS: number
}

export interface HttpAnswer {
  /** 0: no answer came. */
  status: number
  text: string
  /** Empty unless the text is a JSON object. */
  body: Readonly<Record<string, unknown>>
  retryAfterMs: number | undefined
  /** By which support finds what became of the request. */
  requestId: string | undefined
}

/** Rejects with the reason of the signal alone: a lost connection is an answer of status 0. */
export async function send(
  { url, method, body, headers, holdS, credentials }: Sent,
  life: AbortSignal,
): Promise<HttpAnswer> {
  const answer = await answerWithin(holdS * 1_000 + SLACK_MS, life, async (signal) => {
    const response = await fetch(url, {
      method,
      credentials,
      ...(body === undefined ? {} : { body }),
      headers: { ...headers, 'content-type': 'application/json', prefer: `wait=${holdS}` },
      signal,
      // A gateway redirects nowhere, and a password goes to nobody else.
      redirect: 'manual',
    })
    const text = await response.text()
    const read = objectOf(text)
    // Browsers hide the status of a redirection.
    const status = response.status || 302
    const requestId = response.headers.get('x-request-id') ?? undefined
    return { status, text, body: read, retryAfterMs: retryAfterMs(response.headers, read), requestId }
  })
  return answer ?? { status: 0, text: '', body: {}, retryAfterMs: undefined, requestId: undefined }
}

/** Undefined when no answer came within the time. Rejects with the reason of `life` alone. */
export async function answerWithin<T>(
  timeMs: number,
  life: AbortSignal,
  request: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const attempt = new AbortController()
  const abort = () => attempt.abort()
  const timer = setTimeout(abort, timeMs)
  life.addEventListener('abort', abort)
  try {
    if (life.aborted) throw life.reason
    return await request(attempt.signal)
  } catch {
    if (life.aborted) throw life.reason
    return undefined
  } finally {
    clearTimeout(timer)
    life.removeEventListener('abort', abort)
  }
}

function objectOf(text: string): HttpAnswer['body'] {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

/** Retry-After (RFC 9110, 10.2.3); tickets have it in their body: other origins see no header. */
function retryAfterMs(headers: Headers, { retryAfter }: HttpAnswer['body']): number | undefined {
  const text = headers.get('retry-after') ?? String(retryAfter)
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now()
  return Number.isNaN(ms) ? undefined : ms
}
