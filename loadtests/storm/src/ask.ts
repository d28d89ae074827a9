// One request and its answer, over Node's own HTTP.
import http from 'node:http'
import https from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import type { HttpRequest } from './request.ts'
import type { Target } from './target.ts'

export interface StormAnswer {
  /** Undefined without an answer, or with one that broke off. */
  status: number | undefined
  /** Why there is no status: `timeout`, or the code of an error such as `ECONNRESET`. */
  failure: string | undefined
  /** What Retry-After asks for, in milliseconds; undefined without a readable one. */
  retryAfterMs: number | undefined
  /** The body, where it was to be kept and is not too large. */
  text: string
}

export interface AskOptions {
  timeoutMs: number
  /** How many connections at a time [as many as requests are open] */
  connections?: number
  /** Whether bodies of answers are kept [no] */
  keepsText?: boolean
  /** Hangs up. */
  signal: AbortSignal
}

/** Asks on connections that are kept; redirects are answers. */
export interface Connections {
  /** Never rejects. */
  ask(request: HttpRequest): Promise<StormAnswer>
  close(): void
}

const ANSWER_MAX_BYTES = 10 * 1024 * 1024
const TEXT_MAX_BYTES = 256 * 1024

export function openConnections(target: Target, options: AskOptions): Connections {
  const kept = { keepAlive: true, maxSockets: options.connections ?? Number.POSITIVE_INFINITY }
  const agent = target.isTls ? new https.Agent(kept) : new http.Agent(kept)
  return {
    async ask(request) {
      const { isStale, answer } = await attempt(target, agent, request, options)
      // A server may close an idle connection just when it is used again; then browsers, too, ask once more.
      return isStale ? (await attempt(target, agent, request, options)).answer : answer
    },
    close: () => agent.destroy(),
  }
}

interface Attempt {
  answer: StormAnswer
  /** Whether a kept connection was reset before anything was answered. */
  isStale: boolean
}

function attempt(
  { isTls, dial }: Target,
  agent: http.Agent,
  { method, path, headers, body }: HttpRequest,
  { timeoutMs, keepsText = false, signal }: AskOptions,
): Promise<Attempt> {
  return new Promise((resolve) => {
    let failure: string | undefined
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
    const sent = {
      ...{ ...dial, agent, method, path, signal },
      headers: { 'user-agent': 'spillway-storm', accept: '*/*', ...headers, ...length },
    }
    const outgoing = isTls ? https.request(sent) : http.request(sent)
    const giveUp = (why: string) => {
      failure ??= why
      outgoing.destroy()
    }
    const timer = setTimeout(() => giveUp('timeout'), timeoutMs)
    const onError = (error: NodeJS.ErrnoException) => {
      failure ??= error.code ?? error.name
    }
    outgoing.on('error', onError)
    outgoing.on('response', (incoming) => {
      let bytes = 0
      const chunks: Buffer[] = []
      incoming.on('error', onError)
      incoming.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (keepsText) chunks.push(chunk)
        if (bytes > ANSWER_MAX_BYTES) giveUp('answer too large')
      })
      incoming.on('end', () => {
        clearTimeout(timer)
        const retryAfterMs = toMs(incoming.headers['retry-after'])
        // Whole or not at all: what is hidden in it could not be found in a part.
        const text = bytes > TEXT_MAX_BYTES ? '' : Buffer.concat(chunks).toString()
        resolve({ isStale: false, answer: { status: incoming.statusCode, failure: undefined, retryAfterMs, text } })
      })
    })
    // After the end of an answer this changes nothing.
    outgoing.on('close', () => {
      clearTimeout(timer)
      const isStale = outgoing.reusedSocket && failure === 'ECONNRESET' && !signal.aborted
      resolve({
        isStale,
        answer: { status: undefined, failure: failure ?? 'closed', retryAfterMs: undefined, text: '' },
      })
    })
    outgoing.end(body)
  })
}

/** Seconds or a date (RFC 9110, 10.2.3). */
function toMs(retryAfter: string | undefined): number | undefined {
  if (retryAfter === undefined) return undefined
  const ms = /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1_000 : Date.parse(retryAfter) - Date.now()
  return Number.isNaN(ms) ? undefined : Math.max(ms, 0)
}

/** Resolves after so long, or when the signal fires; true if it was the time. */
export function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  return sleep(ms, true, { signal }).catch(() => false)
}

// The beginning of an answer, to be shown: nothing of the request that it answers is in it, since that holds a password.

const SHOWN_CHARACTERS = 200
const HIDDEN = '[…]'

/**
 * One line. What the answer repeats of the request's values is hidden, in every encoding that leaves letters and digits as they are (which
 * base64 does not), and now and then a common word with it.
 */
export function beginningOf(answer: string, request: HttpRequest): string {
  const secrets = [...new Set(valuesOf(request).flatMap((value) => [...spellings(value), ...words(value)]))]
  const longestFirst = secrets
    .sort((a, b) => b.length - a.length)
    .map((secret) => secret.replace(/[^A-Za-z0-9 ]/g, '\\$&'))
  const hidden = longestFirst.reduce((text, secret) => text.replace(new RegExp(secret, 'gi'), HIDDEN), answer)
  const line = hidden
    // Punctuation between hidden parts is hidden too: it may belong to a value in an unknown encoding.
    .replace(/\[…\](?:[^A-Za-z0-9]*\[…\])+/g, HIDDEN)
    // A terminal would interpret control characters.
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  return line.length > SHOWN_CHARACTERS ? `${line.slice(0, SHOWN_CHARACTERS)}…` : line
}

/** All values in the query, the headers and the body. */
function valuesOf({ path, headers, body = '' }: HttpRequest): string[] {
  const query = new URLSearchParams(path.split('?')[1])
  const inHeaders = Object.entries(headers).flatMap(([name, value]) =>
    name === 'content-type' ? [] : [value, ...value.split(' ')],
  )
  return [...query.values(), ...inHeaders, ...inBody(body)].filter((value) => value !== '')
}

function inBody(body: string): string[] {
  try {
    const texts: string[] = []
    JSON.parse(body, (_name, value) => {
      if (typeof value === 'string' || typeof value === 'number') texts.push(String(value))
      return value
    })
    return texts
  } catch {
    return [body, ...new URLSearchParams(body).values()]
  }
}

/** As JSON, a URL, a form or HTML have it. */
function spellings(value: string): string[] {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
  const asHtml = value.replace(/[&<>"']/g, (character) => entities[character] ?? character)
  const asForm = new URLSearchParams({ '': value }).toString().slice(1)
  return [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value), asForm, asHtml]
}

/** Its runs of letters and digits of ASCII, which every encoding of text leaves as they are. */
function words(value: string): string[] {
  return value.match(/[A-Za-z0-9]{2,}/g) ?? []
}
