/** One request, and what came of it. */

/** Beyond its hold a request may take this long, in milliseconds; then its connection is taken to be lost. */
const SLACK_MS = 15_000

export interface Sent {
  url: string
  method: string
  /** JSON; undefined for none. */
  body: string | undefined
  credentials: 'include' | 'same-origin'
  headers: Readonly<Record<string, string>>
  holdS: number
}

export interface Answer {
  /** 0: none came. */
  status: number
  text: string
  /** Empty unless the text is a JSON object. */
  body: Readonly<Record<string, unknown>>
  retryAfterMs: number | undefined
}

/** Sends it. Rejects with the reason of the signal alone: a lost connection is an answer of status 0. */
export async function send(
  { url, method, body, headers, holdS, credentials }: Sent,
  signal: AbortSignal,
): Promise<Answer> {
  const request = new AbortController()
  const abort = () => request.abort()
  const timer = setTimeout(abort, holdS * 1_000 + SLACK_MS)
  signal.addEventListener('abort', abort)
  try {
    signal.throwIfAborted()
    const response = await fetch(url, {
      method,
      credentials,
      ...(body === undefined ? {} : { body }),
      headers: { ...headers, 'content-type': 'application/json', prefer: `wait=${holdS}` },
      signal: request.signal,
      // A gateway redirects nowhere, and a password goes to nobody else.
      redirect: 'manual',
    })
    const text = await response.text()
    const read = objectOf(text)
    // Browsers hide the status of a redirection.
    const status = response.status || 302
    return { status, text, body: read, retryAfterMs: retryAfterMs(response.headers, read) }
  } catch {
    signal.throwIfAborted()
    return { status: 0, text: '', body: {}, retryAfterMs: undefined }
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}

function objectOf(text: string): Answer['body'] {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

/** Retry-After, seconds or a date (RFC 9110, 10.2.3). A page of another origin may not see the header: tickets say it in their body. */
function retryAfterMs(headers: Headers, { retryAfter }: Answer['body']): number | undefined {
  const text = headers.get('retry-after') ?? String(retryAfter)
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now()
  return Number.isNaN(ms) ? undefined : ms
}
