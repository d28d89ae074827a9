// A server that answers as a test says, one answer after the other: also as no gateway does.
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { listening } from '@spillway/infra/processes/port'
import type { TestContext } from 'vitest'

/** `lost` ends the connection; `held` never answers. */
export type Scripted =
  | 'lost'
  | 'held'
  | { status: number; body?: unknown; text?: string; headers?: Record<string, string> }

export interface Seen {
  path: string
  body: Record<string, unknown>
  prefer: string | undefined
  /** The answer to a challenge. */
  solution: string | undefined
  atMs: number
}

/** The last answer is repeated. */
export async function startScripted(t: TestContext, ...answers: Scripted[]) {
  const seen: Seen[] = []
  const server = createServer(async (request, response) => {
    const read = await text(request)
    const answer = answers[Math.min(seen.length, answers.length - 1)] ?? 'lost'
    const { url: path = '', headers } = request
    seen.push({
      path,
      body: JSON.parse(read || '{}'),
      prefer: String(headers.prefer),
      solution: headers['spillway-challenge']?.toString(),
      atMs: performance.now(),
    })
    if (answer === 'held') return
    if (answer === 'lost') return void request.socket.destroy()
    response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers })
    response.end(answer.text ?? JSON.stringify(answer.body))
  })
  const port = await listening(server)
  t.onTestFinished(async () => {
    server.close()
    server.closeAllConnections()
  })
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    seen,
    /** Of the requests, in order. */
    paths: () => seen.map(({ path }) => path.replace('/v1/', '')),
  }
}

/** A sessionStorage, as a page has it. */
export function newStorage(entries: readonly (readonly [string, string])[] = []) {
  const kept = new Map(entries)
  return {
    kept,
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  }
}
