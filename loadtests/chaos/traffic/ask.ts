// Single requests, where a scenario wants to know exactly what is answered and when.

export interface Reply {
  status: number
  /** Empty where the answer has no JSON. */
  body: Record<string, unknown>
  headers: Headers
  tookMs: number
}

/** What does not answer at all is given up after this. */
const PATIENCE_MS = 15_000

/** GET, or with a body POST. Rejects when there is no answer. */
export async function ask(
  url: string,
  path: string,
  { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
): Promise<Reply> {
  const sentMs = performance.now()
  const response = await fetch(new URL(path, url), {
    signal: AbortSignal.timeout(PATIENCE_MS),
    ...(body === undefined
      ? { headers }
      : {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          body: JSON.stringify(body),
        }),
  })
  const text = await response.text()
  const tookMs = performance.now() - sentMs
  return { status: response.status, body: parse(text), headers: response.headers, tookMs }
}

function parse(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}
